#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "bindings/builder.hpp"
#include "bindings/mask_array.hpp"
#include "matcher/batch.hpp"
#include "matcher/matcher.hpp"
#include "regular/expr.hpp"
#include "regular/long_work.hpp"
#include "vocabulary/block.hpp"
#include "vocabulary/vocabulary.hpp"

// The Python module grammask._core: types in, types out, no logic of its own. Its stub is src/grammask/_core.pyi.

namespace nb = nanobind;
using namespace nb::literals;

namespace grammask {
namespace {

using MaskBatch = nb::ndarray<int32_t, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

nb::bytes to_bytes(std::string_view s) { return nb::bytes(s.data(), s.size()); }
std::string_view view(const nb::bytes& b) { return {b.c_str(), b.size()}; }

uint32_t token_id(int64_t id) { return id < 0 || id > 0xffffffffll ? 0xffffffffu : static_cast<uint32_t>(id); }

std::shared_ptr<Vocabulary> make_vocabulary(nb::sequence tokens, std::vector<int64_t> eos, int64_t size) {
  if (size < 0) throw std::invalid_argument("the size of a vocabulary is not negative");
  std::vector<std::optional<std::string>> list;
  for (nb::handle h : tokens) {
    if (h.is_none()) {
      list.emplace_back(std::nullopt);
    } else {
      char* data = nullptr;
      Py_ssize_t length = 0;
      if (PyBytes_AsStringAndSize(h.ptr(), &data, &length) != 0) throw nb::python_error();
      list.emplace_back(std::string(data, static_cast<size_t>(length)));
    }
  }
  std::vector<uint32_t> ids;
  for (const int64_t id : eos) ids.push_back(token_id(id));
  return std::make_shared<Vocabulary>(std::move(list), std::move(ids), token_id(size));
}

// Memory of a Python object, which is kept until the last native owner lets go of it, in whichever thread that is.
std::shared_ptr<const Py_buffer> kept(nb::handle object) {
  auto buffer = std::make_unique<Py_buffer>();
  if (PyObject_GetBuffer(object.ptr(), buffer.get(), PyBUF_SIMPLE) != 0) throw nb::python_error();
  return {buffer.release(), [](Py_buffer* held) {
            if (nb::is_alive()) {
              const nb::gil_scoped_acquire acquire;
              PyBuffer_Release(held);
            }
            delete held;
          }};
}

template <typename T>
std::span<const T> span_of(const Py_buffer& buffer) {
  if (static_cast<size_t>(buffer.len) % sizeof(T) != 0 || reinterpret_cast<uintptr_t>(buffer.buf) % alignof(T) != 0) {
    throw std::invalid_argument("the memory does not hold whole, aligned numbers");
  }
  return {static_cast<const T*>(buffer.buf), static_cast<size_t>(buffer.len) / sizeof(T)};
}

// The vocabulary reads its tokens where Python keeps them.
std::shared_ptr<Vocabulary> vocabulary_of_arrays(nb::handle data, nb::handle offsets, const std::vector<int64_t>& eos) {
  const auto memory = std::make_shared<std::pair<std::shared_ptr<const Py_buffer>, std::shared_ptr<const Py_buffer>>>(
      kept(data), kept(offsets));
  Vocabulary::Tokens tokens{
      Column<char>(span_of<char>(*memory->first)), Column<uint32_t>(span_of<uint32_t>(*memory->second)), {}};
  for (const int64_t id : eos) tokens.eos.push_back(token_id(id));
  const nb::gil_scoped_release release;
  return std::make_shared<Vocabulary>(std::move(tokens), memory);
}

nb::tuple load_vocabulary(nb::handle block) {
  const auto memory = kept(block);
  const auto [vocabulary, notes] = from_block(span_of<char>(*memory), memory);
  return nb::make_tuple(vocabulary, to_bytes(notes));
}

template <typename T>
nb::list to_list(const std::vector<T>& values) {
  nb::list out;
  for (const T& v : values) out.append(v);
  return out;
}

void check_words(size_t got, const Matcher& m) {
  const size_t want = m.compiled().vocabulary->words();
  if (got != want) {
    throw std::invalid_argument("the mask has " + std::to_string(got) + " words; this vocabulary needs " +
                                std::to_string(want) + ", one int32 for every 32 tokens");
  }
}

// Runs f, which uses the matcher and no Python objects, while other threads of the interpreter go on.
template <typename F>
auto alone(Matcher& m, F&& f) {
  const Matcher::Use use(m);
  const nb::gil_scoped_release release;
  return f();
}

// The interpreter's lock, kept until there is long work to do.
class InterpreterLock final : public LongWork::Host {
 public:
  void begins() override {
    if (!state_) state_ = PyEval_SaveThread();
  }
  ~InterpreterLock() override {
    if (state_) PyEval_RestoreThread(state_);
  }

 private:
  PyThreadState* state_ = nullptr;
};

nb::object allowed_token_ids(Matcher& m) {
  std::vector<uint32_t> words(m.compiled().vocabulary->words());
  alone(m, [&] { m.fill_mask(words.data()); });
  size_t n = 0;
  for (const uint32_t w : words) n += static_cast<size_t>(std::popcount(w));
  auto* ids = new int32_t[n ? n : 1];
  nb::capsule owner(ids, [](void* p) noexcept { delete[] static_cast<int32_t*>(p); });
  size_t i = 0;
  for (size_t k = 0; k < words.size(); ++k) {
    for (uint32_t w = words[k]; w; w &= w - 1)
      ids[i++] = static_cast<int32_t>(k * 32 + static_cast<size_t>(std::countr_zero(w)));
  }
  return nb::cast(nb::ndarray<nb::numpy, int32_t, nb::ndim<1>>(ids, {n}, owner));
}

}  // namespace

NB_MODULE(_core, m) {
  // Objects that module globals still hold when the interpreter exits are not leaks worth a warning to users.
  nb::set_leak_warnings(false);
  // Threads that wait for an arena let go of the interpreter if they hold it.
  ArenaMutex::host = {[]() -> void* { return PyGILState_Check() ? PyEval_SaveThread() : nullptr; },
                      [](void* state) {
                        if (state) PyEval_RestoreThread(static_cast<PyThreadState*>(state));
                      }};
  static nb::exception<TooLarge> too_large(m, "ConstraintTooLargeError");

  nb::class_<Vocabulary>(m, "Vocabulary",
                         "Token bytes, the token trie and the caches that constraints over this vocabulary share.")
      .def(nb::new_(&make_vocabulary), "tokens"_a, "eos_token_ids"_a, "size"_a)
      .def_static("from_arrays", &vocabulary_of_arrays, "data"_a, "offsets"_a, "eos_token_ids"_a)
      .def_static("load", &load_vocabulary, "block"_a)
      .def(
          "to_block", [](const Vocabulary& v, const nb::bytes& notes) { return to_bytes(to_block(v, view(notes))); },
          "notes"_a)
      .def_prop_ro("size", &Vocabulary::size)
      .def_prop_ro("eos_token_ids", [](const Vocabulary& v) { return to_list(v.eos_token_ids()); })
      .def(
          "token_bytes",
          [](const Vocabulary& v, int64_t id) -> nb::object {
            const auto t = v.token(token_id(id));
            return t ? nb::object(to_bytes(*t)) : nb::none();
          },
          "token_id"_a)
      .def_prop_ro("data",
                   [](nb::handle_t<Vocabulary> self) {
                     const auto& bytes = nb::cast<const Vocabulary&>(self).tokens().bytes;
                     return nb::ndarray<nb::numpy, const uint8_t, nb::ndim<1>>(bytes.data(), {bytes.size()}, self);
                   })
      .def_prop_ro("offsets",
                   [](nb::handle_t<Vocabulary> self) {
                     const auto& offset = nb::cast<const Vocabulary&>(self).tokens().offset;
                     return nb::ndarray<nb::numpy, const uint32_t, nb::ndim<1>>(offset.data(), {offset.size()}, self);
                   })
      .def(
          "tokenize_greedy",
          [](const Vocabulary& v, const nb::bytes& text) { return to_list(v.tokenize_greedy(view(text), false)); },
          "text"_a)
      .def_prop_rw("cache_budget", &Vocabulary::arena_budget, &Vocabulary::set_arena_budget)
      .def("memory_bytes", [](Vocabulary& v) {
        nb::dict d;
        d["vocabulary"] = v.memory_bytes();
        const auto arena = v.arena();
        const std::lock_guard lock(arena->mutex());
        d["shared_caches"] = arena->memory_bytes();
        d["shared_masks"] = arena->mask_bytes();
        return d;
      });

  bind_builder(m);

  nb::class_<Compiled>(m, "Compiled", "A constraint compiled for a vocabulary: immutable, shareable between threads.")
      .def_prop_ro("vocabulary", [](const Compiled& c) { return c.vocabulary; })
      .def(
          "matcher", [](std::shared_ptr<Compiled> c) { return new Matcher(std::move(c)); },
          nb::rv_policy::take_ownership)
      .def_rw("work_seconds", &Compiled::work_seconds)
      .def("memory_bytes", [](const Compiled& c) {
        nb::dict d;
        const std::lock_guard lock(c.arena->mutex());
        d["expressions"] = c.arena->pool().size();
        d["states"] = c.arena->state_count();
        d["masks"] = c.arena->mask_bytes();
        d["total"] = c.arena->memory_bytes();
        return d;
      });

  nb::class_<Matcher>(m, "Matcher",
                      "The position of one sequence inside a compiled constraint. Used by one thread at a time.")
      .def(
          "fill_mask",
          [](Matcher& self, nb::handle out) {
            const std::span<uint32_t> words = mask_words(out);
            check_words(words.size(), self);
            const Matcher::Use use(self);
            InterpreterLock lock;
            self.fill_mask(words.data());
          },
          "out"_a)
      .def("allowed_token_ids", &allowed_token_ids)
      .def(
          "accept",
          [](Matcher& self, int64_t id) {
            const Matcher::Use use(self);
            return self.accept(token_id(id));
          },
          "token_id"_a)
      .def(
          "accept_bytes",
          [](Matcher& self, const nb::bytes& data) {
            return alone(self, [&] { return self.accept_bytes(view(data)); });
          },
          "data"_a)
      .def(
          "matched_prefix",
          [](Matcher& self, const nb::bytes& data) {
            return alone(self, [&] { return self.matched_prefix(view(data)); });
          },
          "data"_a)
      .def("next_bytes", [](Matcher& self) { return to_bytes(alone(self, [&] { return self.next_bytes(); })); })
      .def(
          "rollback",
          [](Matcher& self, int64_t n) {
            if (n < 0) throw std::out_of_range("rollback of a negative number of tokens");
            const Matcher::Use use(self);
            self.rollback(static_cast<size_t>(n));
          },
          "n_tokens"_a)
      .def(
          "forced_bytes",
          [](Matcher& self, size_t limit) { return to_bytes(alone(self, [&] { return self.forced_bytes(limit); })); },
          "limit"_a = 65536)
      .def("forced_tokens", [](Matcher& self) { return to_list(alone(self, [&] { return self.forced_tokens(); })); })
      .def("shortest_completion",
           [](Matcher& self) -> nb::object {
             const auto tokens = alone(self, [&] { return self.shortest_completion(); });
             return tokens ? nb::object(to_list(*tokens)) : nb::none();
           })
      .def_prop_ro("is_complete",
                   [](Matcher& self) {
                     const Matcher::Use use(self);
                     return self.is_complete();
                   })
      .def_prop_ro("is_terminated", &Matcher::is_terminated)
      .def(
          "copy",
          [](Matcher& self) {
            const Matcher::Use use(self);
            return new Matcher(self);
          },
          nb::rv_policy::take_ownership)
      .def("stack", [](Matcher& self) { return alone(self, [&] { return self.stack(); }); })
      .def("memory_bytes", &Matcher::memory_bytes);

  m.def(
      "fill_masks",
      [](nb::sequence matchers, MaskBatch out, std::optional<int> threads) {
        std::vector<Matcher*> list;
        for (nb::handle h : matchers) {
          if (!nb::isinstance<Matcher>(h)) throw nb::type_error("matchers holds something other than a Matcher");
          list.push_back(nb::cast<Matcher*>(h));
        }
        if (list.size() != out.shape(0)) throw std::invalid_argument("out needs one row for each matcher");
        for (const Matcher* matcher : list) check_words(out.shape(1), *matcher);
        std::vector<Matcher*> sorted = list;
        std::sort(sorted.begin(), sorted.end(), std::less<>());
        if (std::adjacent_find(sorted.begin(), sorted.end()) != sorted.end()) {
          throw std::invalid_argument("a matcher appears twice in one batch");
        }
        std::deque<Matcher::Use> uses;
        for (Matcher* matcher : list) uses.emplace_back(*matcher);
        const nb::gil_scoped_release release;
        fill_masks(list, reinterpret_cast<uint32_t*>(out.data()), out.shape(1), threads.value_or(0));
      },
      "matchers"_a, "out"_a.noconvert(), "threads"_a = nb::none());
}

}  // namespace grammask
