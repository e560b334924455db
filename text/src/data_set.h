#ifndef AAH_TEXT_SRC_DATA_SET_H_
#define AAH_TEXT_SRC_DATA_SET_H_

#include <filesystem>
#include <string>

#include "aah/io/file.h"
#include "aah/io/json.h"
#include "aah/text/token_file.h"

namespace aah {

// Throws aah::Error unless `output` names a folder and, without `overwrite`, no data set is in it.
void CheckOutputFree(const std::string& output, bool overwrite);

// The folder of a data set while its files are made. They are written to a folder inside it and
// move to their places together, so that a preparation that fails (a full disk, a text that cannot
// be encoded) leaves what was there before and nothing else.
class DataSetFolder {
 public:
  // Makes the folder where there is none.
  explicit DataSetFolder(const std::string& output);
  ~DataSetFolder();
  DataSetFolder(const DataSetFolder&) = delete;
  DataSetFolder& operator=(const DataSetFolder&) = delete;

  // Where to write the files.
  const std::filesystem::path& unfinished() const { return unfinished_.temporary_path(); }

  // Moves tokenizer.json, data.json and tokens.bin. To be called once.
  void Commit();

 private:
  std::filesystem::path folder_;
  bool created_;
  AtomicFolderWriter unfinished_;  // never renamed itself
};

// The `splits` of data.json: per split its tokens, documents and text_bytes.
nlohmann::ordered_json DescribeSplits(const TokenFileInfo& info);

}  // namespace aah

#endif  // AAH_TEXT_SRC_DATA_SET_H_
