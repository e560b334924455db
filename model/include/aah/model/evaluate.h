#ifndef AAH_MODEL_EVALUATE_H_
#define AAH_MODEL_EVALUATE_H_

#include <cstdint>
#include <string>
#include <vector>

namespace aah {

struct EvaluateOptions {
  std::string run;                   // run folder (its newest checkpoint) or a checkpoint's folder
  std::string split = "validation";  // train, validation or test
  std::string data;                  // empty: the run's own
  std::string plan;                  // a window plan's file, in place of the run's attention
  int64_t stretches = 0;             // 0: the whole split
  int64_t batch_size = 1;            // stretches per forward pass
  int64_t buckets = 8;               // of positions in the context, equal in width
  int64_t threads = 0;               // 0: as many as torch finds
};

// Mean loss of the tokens predicted at positions [begin, end) of a stretch, 0-based, that count.
struct PositionLoss {
  int64_t begin = 0;
  int64_t end = 0;
  double loss = 0;
};

struct EvaluationResult {
  std::string checkpoint;  // folder
  int64_t step = 0;
  std::string attention;  // AttentionName of the run's, or "plan FILE"
  std::string split;
  int64_t tokens = 0;     // predicted, of a task the answers
  double loss = 0;        // nats per token
  double accuracy = 0;    // share of them that have the greatest logit
  double perplexity = 0;  // exp(loss)
  double bits_per_byte = 0;
  double allocated_context_ratio = 0;
  double visible_pair_ratio = 0;
  std::vector<PositionLoss> by_position;
};

// Throws aah::Error where the run has no checkpoint, the data was made with another tokenizer, the
// split is shorter than one context, or the plan is for another model (ReadPlannedAttention).
EvaluationResult EvaluateRun(const EvaluateOptions& options);

}  // namespace aah

#endif  // AAH_MODEL_EVALUATE_H_
