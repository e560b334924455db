#ifndef AAH_TEXT_SRC_BPE_TOKENIZER_H_
#define AAH_TEXT_SRC_BPE_TOKENIZER_H_

#include <memory>
#include <string>

#include "aah/text/tokenizer.h"
#include "tokenizer_description.h"

namespace aah {

// `json` is the tokenizer.json it came from, kept for Save; empty: one is made.
std::unique_ptr<Tokenizer> MakeBpeTokenizer(TokenizerDescription description, std::string json);

// The BPE without merges whose ids are those of the byte tokenizer.
TokenizerDescription DescribeByteTokenizer();

}  // namespace aah

#endif  // AAH_TEXT_SRC_BPE_TOKENIZER_H_
