#pragma once

namespace grammask {

// Tells the caller of a matcher before something may take long: a state, a table or a mask that is not there yet has to be made.
//
// Most masks are looked up and copied in less than a microsecond. An interpreter with a global lock keeps it for those, since
// to let go of it and to take it again costs a tenth of that; other threads get it as soon as there is more to do.
class LongWork {
 public:
  class Host {
   public:
    Host() : outer_(current()) { current() = this; }
    virtual ~Host() { current() = outer_; }
    Host(const Host&) = delete;
    Host& operator=(const Host&) = delete;
    // Called in the thread of the host, any number of times.
    virtual void begins() = 0;

   private:
    Host* outer_;
  };

  static void begins() {
    if (Host* const host = current()) host->begins();
  }

 private:
  static Host*& current() {
    static thread_local Host* innermost = nullptr;
    return innermost;
  }
};

}  // namespace grammask
