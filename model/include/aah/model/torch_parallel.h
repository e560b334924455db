#ifndef AAH_MODEL_TORCH_PARALLEL_H_
#define AAH_MODEL_TORCH_PARALLEL_H_

#include "aah/parallel.h"

namespace aah {

// core's work on torch's own threads (at::parallel_for), so that one process has one set of them;
// at::get_num_threads() workers. Inside one of torch's parallel regions the workers run one after
// another on the calling thread. Lives as long as the process; thread-safe.
Parallel& TorchParallel();

}  // namespace aah

#endif  // AAH_MODEL_TORCH_PARALLEL_H_
