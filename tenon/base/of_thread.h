// Objects that each thread has for itself, and places that it looks at first.
#pragma once

#include <cstddef>
#include <memory>
#include <utility>

#include "tenon/base/api.h"

namespace tenon {

// A small number of the thread, in the order in which threads asked: where threads share a few
// places of a kind, each begins at its own and so disturbs no other.
TENON_API size_t thread_number();

// The thread's T; null when its objects are gone, as they may be for what runs in destructors at
// the end of the thread or of the program.
template <class T>
T* of_thread() {
  static thread_local bool gone = false;  // outlives `held`
  struct Held {
    T object{};
    ~Held() { gone = true; }
  };
  static thread_local Held held;
  return gone ? nullptr : &held.object;
}

// A T that one piece of work after another uses, so that its memory is kept. Work that begins
// inside other work of the thread gets another one. `clear()` is called when the work is done.
template <class T>
class Reused {
 public:
  Reused() {
    if (Kept* kept = of_thread<Kept>()) object_ = std::move(kept->object);
    if (object_ == nullptr) object_ = std::make_unique<T>();
  }
  ~Reused() {
    object_->clear();
    Kept* kept = of_thread<Kept>();
    if (kept != nullptr && kept->object == nullptr) kept->object = std::move(object_);
  }
  Reused(const Reused&) = delete;
  Reused& operator=(const Reused&) = delete;

  T& operator*() const { return *object_; }

 private:
  struct Kept {
    std::unique_ptr<T> object;
  };

  std::unique_ptr<T> object_;
};

}  // namespace tenon
