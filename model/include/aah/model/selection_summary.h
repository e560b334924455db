#ifndef AAH_MODEL_SELECTION_SUMMARY_H_
#define AAH_MODEL_SELECTION_SUMMARY_H_

#include <cstdint>
#include <string>

namespace aah {

// Where the search for windows stands after a step; in JSON the object "selection" of a train
// record. Costs are shares of full attention's, as the budget counts them.
struct SelectionSummary {
  std::string phase;  // warmup, search or plan
  double temperature = 0;
  double target_cost = 0;
  double expected_cost = 0;  // under the selection weights
  double multiplier = 0;     // log weight that a unit of cost takes from a candidate
  double hard_cost = 0;      // of the plan in force; before there is one, of the likeliest windows
  double entropy = 0;        // of the weights, nats, mean over heads
  bool decided = false;      // a plan was chosen in this step,
  int64_t moved = 0;         // with another window for so many heads,
  double duality_gap = 0;    // and so much log weight, at most, below the best within the budget
};

}  // namespace aah

#endif  // AAH_MODEL_SELECTION_SUMMARY_H_
