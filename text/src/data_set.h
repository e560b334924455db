#ifndef AAH_TEXT_SRC_DATA_SET_H_
#define AAH_TEXT_SRC_DATA_SET_H_

#include <filesystem>
#include <string>
#include <vector>

#include "aah/io/file.h"
#include "aah/io/json.h"
#include "aah/text/token_file.h"

namespace aah {

// Throws aah::Error unless `output` names a folder and, without `overwrite`, no data set is in it.
void CheckOutputFree(const std::string& output, bool overwrite);

// The folders of a path that are not there yet. They are removed at the end where they are empty.
class NewFolders {
 public:
  explicit NewFolders(const std::filesystem::path& path);
  ~NewFolders();
  NewFolders(const NewFolders&) = delete;
  NewFolders& operator=(const NewFolders&) = delete;

 private:
  std::vector<std::filesystem::path> folders_;  // the innermost first
};

// The folder of a data set while its files are made. They are written to a folder inside it and
// move to their places together, so that a preparation that fails (a full disk, a text that cannot
// be encoded) leaves what was there before and nothing else. Two preparations at once cannot write
// to the same folder: the second removes what the first has written, as that of a killed process.
class DataSetFolder {
 public:
  // Makes the folder, and those above it, where there is none.
  explicit DataSetFolder(const std::string& output);

  // Where to write the files.
  const std::filesystem::path& unfinished() const { return unfinished_.temporary_path(); }

  // Moves tokenizer.json, data.json and tokens.bin, removes those of an earlier data set that were
  // not written anew, flushes the folder. To be called once.
  void Commit();

 private:
  std::filesystem::path folder_;
  NewFolders new_folders_;
  AtomicFolderWriter unfinished_;  // never renamed itself
};

// The `splits` of data.json: per split its tokens, documents and text_bytes.
nlohmann::ordered_json DescribeSplits(const TokenFileInfo& info);

}  // namespace aah

#endif  // AAH_TEXT_SRC_DATA_SET_H_
