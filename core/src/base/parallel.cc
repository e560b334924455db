#include "aah/parallel.h"

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "aah/error.h"

namespace aah {
namespace {

class ThreadPool final : public Parallel {
 public:
  explicit ThreadPool(int workers) : errors_(static_cast<size_t>(workers)) {
    threads_.reserve(static_cast<size_t>(workers - 1));
    for (int worker = 1; worker < workers; ++worker) {
      threads_.emplace_back([this, worker] { Loop(worker); });
    }
  }

  ~ThreadPool() override {
    {
      const std::scoped_lock lock(mutex_);
      stop_ = true;
    }
    wake_.notify_all();
    for (std::thread& thread : threads_) thread.join();
  }

  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int worker_count() const override { return static_cast<int>(errors_.size()); }

  void RunOnWorkers(const std::function<void(int worker)>& work) override {
    {
      const std::scoped_lock lock(mutex_);
      work_ = &work;
      running_ = static_cast<int>(threads_.size());
      ++generation_;
    }
    wake_.notify_all();
    RunOne(work, 0);
    {
      std::unique_lock lock(mutex_);
      done_.wait(lock, [this] { return running_ == 0; });
      work_ = nullptr;
    }
    for (std::exception_ptr& error : errors_) {
      if (error == nullptr) continue;
      const std::exception_ptr first = std::exchange(error, nullptr);
      for (std::exception_ptr& rest : errors_) rest = nullptr;
      std::rethrow_exception(first);
    }
  }

 private:
  void RunOne(const std::function<void(int)>& work, int worker) {
    try {
      work(worker);
    } catch (...) {
      errors_[static_cast<size_t>(worker)] = std::current_exception();
    }
  }

  void Loop(int worker) {
    int64_t seen = 0;
    for (;;) {
      const std::function<void(int)>* work = nullptr;
      {
        std::unique_lock lock(mutex_);
        wake_.wait(lock, [this, seen] { return stop_ || generation_ != seen; });
        if (stop_) return;
        seen = generation_;
        work = work_;
      }
      RunOne(*work, worker);
      {
        const std::scoped_lock lock(mutex_);
        --running_;
      }
      done_.notify_one();
    }
  }

  std::mutex mutex_;
  std::condition_variable wake_;
  std::condition_variable done_;
  const std::function<void(int)>* work_ = nullptr;
  int64_t generation_ = 0;
  int running_ = 0;
  bool stop_ = false;
  std::vector<std::exception_ptr> errors_;  // one per worker, so writing needs no lock
  std::vector<std::thread> threads_;
};

}  // namespace

void ForEachTask(Parallel& parallel, int64_t task_count,
                 const std::function<void(int64_t index, int worker)>& task) {
  std::atomic<int64_t> next{0};
  parallel.RunOnWorkers([&](int worker) {
    for (int64_t index = next.fetch_add(1); index < task_count; index = next.fetch_add(1)) {
      task(index, worker);
    }
  });
}

std::unique_ptr<Parallel> MakeThreadPool(int workers) {
  AAH_CHECK(workers >= 1, "expected at least 1 worker thread, got ", workers);
  return std::make_unique<ThreadPool>(workers);
}

}  // namespace aah
