#pragma once

#include <mutex>

namespace grammask {

// A recursive mutex that tells its host before a thread has to wait.
//
// An interpreter with a global lock (CPython) must let go of it while one of its threads waits here: the thread that
// holds the mutex may need the interpreter to go on, and all other threads should not stand still meanwhile. Every lock
// that a thread may wait for with the interpreter in its hands must be of this kind: enter() waits for the interpreter with
// the mutex held, which is safe only if whoever has the interpreter never waits for a mutex.
class ArenaMutex {
 public:
  // leave() runs before a wait and returns what enter() gets after it.
  struct Host {
    void* (*leave)();
    void (*enter)(void*);
  };
  static inline Host host{[]() -> void* { return nullptr; }, [](void*) {}};

  void lock() {
    if (mutex_.try_lock()) return;
    void* const token = host.leave();
    mutex_.lock();
    host.enter(token);
  }
  bool try_lock() { return mutex_.try_lock(); }
  void unlock() { mutex_.unlock(); }

 private:
  std::recursive_mutex mutex_;
};

}  // namespace grammask
