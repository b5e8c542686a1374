#include "matcher/batch.hpp"

#include <atomic>
#include <condition_variable>
#include <exception>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

namespace grammask {

namespace {

// Worker threads that live as long as the process and sleep between batches.
class Pool {
 public:
  static Pool& instance() {
    // Never destroyed: workers may be asleep when static destructors run.
    static Pool* pool = new Pool;
    return *pool;
  }

  template <typename F>
  void run(size_t tasks, size_t helpers, const F& task) {
    Job job;
    job.tasks = tasks;
    job.call = [](const void* f, size_t i) { (*static_cast<const F*>(f))(i); };
    job.context = &task;
    const std::lock_guard one_batch(batch_);
    {
      const std::lock_guard lock(mutex_);
      while (workers_ < helpers) {
        std::thread([this] { work(); }).detach();
        ++workers_;
      }
      job.seats = helpers;
      job_ = &job;
    }
    wake_.notify_all();
    job.drain();
    std::unique_lock lock(mutex_);
    job_ = nullptr;
    idle_.wait(lock, [&] { return job.running == 0; });
    if (job.error) std::rethrow_exception(job.error);
  }

 private:
  struct Job {
    size_t tasks = 0;
    size_t seats = 0;    // helpers that may still join, under mutex_
    size_t running = 0;  // helpers at work, under mutex_
    std::atomic<size_t> next{0};
    void (*call)(const void*, size_t) = nullptr;
    const void* context = nullptr;
    std::mutex error_mutex;
    std::exception_ptr error;

    void drain() {
      for (size_t i; (i = next.fetch_add(1, std::memory_order_relaxed)) < tasks;) {
        try {
          call(context, i);
        } catch (...) {
          const std::lock_guard lock(error_mutex);
          if (!error) error = std::current_exception();
        }
      }
    }
  };

  void work() {
    std::unique_lock lock(mutex_);
    while (true) {
      wake_.wait(lock, [&] { return job_ && job_->seats > 0; });
      Job* job = job_;
      --job->seats;
      ++job->running;
      lock.unlock();
      job->drain();
      lock.lock();
      if (--job->running == 0) idle_.notify_all();
    }
  }

  std::mutex batch_;
  std::mutex mutex_;
  std::condition_variable wake_, idle_;
  Job* job_ = nullptr;
  size_t workers_ = 0;
};

}  // namespace

void fill_masks(std::span<Matcher* const> matchers, uint32_t* out, size_t row_words, int threads) {
  const size_t cores = std::max(1u, std::thread::hardware_concurrency());
  const size_t wanted = std::min(matchers.size(), threads > 0 ? static_cast<size_t>(threads) : cores);
  const auto fill = [&](size_t i) { matchers[i]->fill_mask(out + i * row_words); };
  if (wanted <= 1) {
    for (size_t i = 0; i < matchers.size(); ++i) fill(i);
    return;
  }
  Pool::instance().run(matchers.size(), wanted - 1, fill);
}

}  // namespace grammask
