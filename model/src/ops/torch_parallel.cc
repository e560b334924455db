// Must be compiled with -fopenmp: at::parallel_for is a template that is serial, without a word,
// where it is not.
#include "aah/model/torch_parallel.h"

#include <ATen/Parallel.h>

#include <exception>
#include <vector>

#ifndef _OPENMP
#error "compile this file with -fopenmp"
#endif

namespace aah {
namespace {

class TorchThreads final : public Parallel {
 public:
  int worker_count() const override { return at::get_num_threads(); }

  void RunOnWorkers(const std::function<void(int worker)>& work) override {
    const int workers = worker_count();
    // parallel_for rethrows whichever exception came first in time; the contract is by index.
    std::vector<std::exception_ptr> errors(static_cast<size_t>(workers));
    at::parallel_for(0, workers, 1, [&](int64_t begin, int64_t end) {
      for (int64_t worker = begin; worker < end; ++worker) {
        try {
          work(static_cast<int>(worker));
        } catch (...) {
          errors[static_cast<size_t>(worker)] = std::current_exception();
        }
      }
    });
    for (const std::exception_ptr& error : errors) {
      if (error) std::rethrow_exception(error);
    }
  }
};

}  // namespace

Parallel& TorchParallel() {
  static TorchThreads threads;
  return threads;
}

}  // namespace aah
