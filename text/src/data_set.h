#ifndef AAH_TEXT_SRC_DATA_SET_H_
#define AAH_TEXT_SRC_DATA_SET_H_

#include <string>

#include "aah/io/json.h"
#include "aah/text/token_file.h"

namespace aah {

// Throws aah::Error unless `output` names a folder and, without `overwrite`, no data set is in it.
void CheckOutputFree(const std::string& output, bool overwrite);

// The `splits` of data.json: per split its tokens, documents and text_bytes.
nlohmann::ordered_json DescribeSplits(const TokenFileInfo& info);

}  // namespace aah

#endif  // AAH_TEXT_SRC_DATA_SET_H_
