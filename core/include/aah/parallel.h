#ifndef AAH_PARALLEL_H_
#define AAH_PARALLEL_H_

#include <cstdint>
#include <functional>
#include <memory>

namespace aah {

// Where core's work runs. Handed in by the caller, so that one process has one set of threads:
// torch's under libtorch, a pool of its own when core stands alone.
class Parallel {
 public:
  virtual ~Parallel() = default;

  // How many workers take part, at least 1. Constant while work runs.
  virtual int worker_count() const = 0;

  // Calls `work(worker)` once for each worker in [0, worker_count()), possibly at the same time,
  // and returns when all have returned. An exception thrown by a worker is rethrown here, the
  // first one by worker index. Not reentrant.
  virtual void RunOnWorkers(const std::function<void(int worker)>& work) = 0;
};

// Calls `task(index, worker)` once for every index in [0, task_count). Workers take the next index
// from a shared counter, so that long tasks placed first balance the load.
void ForEachTask(Parallel& parallel, int64_t task_count,
                 const std::function<void(int64_t index, int worker)>& task);

// The calling thread alone.
class SerialParallel final : public Parallel {
 public:
  int worker_count() const override { return 1; }
  void RunOnWorkers(const std::function<void(int worker)>& work) override { work(0); }
};

// A pool of `workers` threads (the caller's included; workers >= 1) that sleep between calls.
// Throws aah::Error for workers < 1. Destruction joins the threads.
std::unique_ptr<Parallel> MakeThreadPool(int workers);

}  // namespace aah

#endif  // AAH_PARALLEL_H_
