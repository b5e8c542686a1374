#pragma once

#include <chrono>

namespace grammask {

// How long the current thread may work on one mask or one token. Within the scope of a WorkLimit, whoever makes expressions
// or states asks is_over() now and then. The clock is first read when somebody asks, so short work never reads it.
class WorkLimit {
 public:
  using Clock = std::chrono::steady_clock;

  explicit WorkLimit(double seconds) : seconds_(seconds), outer_(current()) { current() = this; }
  ~WorkLimit() { current() = outer_; }
  WorkLimit(const WorkLimit&) = delete;
  WorkLimit& operator=(const WorkLimit&) = delete;

  static bool is_over() {
    WorkLimit* const limit = current();
    if (!limit) return false;
    const auto now = Clock::now();
    if (limit->started_ == Clock::time_point{}) limit->started_ = now;
    return std::chrono::duration<double>(now - limit->started_).count() > limit->seconds_;
  }

 private:
  static WorkLimit*& current() {
    static thread_local WorkLimit* innermost = nullptr;
    return innermost;
  }

  double seconds_;
  Clock::time_point started_{};
  WorkLimit* outer_;
};

}  // namespace grammask
