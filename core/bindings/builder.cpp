#include "bindings/builder.hpp"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <chrono>
#include <mutex>

#include "matcher/matcher.hpp"
#include "regular/characters.hpp"
#include "regular/decimal.hpp"
#include "vocabulary/vocabulary.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace grammask {
namespace {

// One constraint under construction. Every call holds the arena's mutex; limits count from the builder's making.
class Builder {
 public:
  Builder(std::shared_ptr<Vocabulary> vocabulary, uint64_t max_expressions, double max_seconds)
      : vocabulary_(std::move(vocabulary)), arena_(vocabulary_->arena()), own_expressions_(max_expressions) {
    const std::lock_guard lock(arena_->mutex());
    max_expressions_ = arena_->pool().size() + max_expressions;
    deadline_ = std::chrono::steady_clock::now() + std::chrono::duration_cast<std::chrono::steady_clock::duration>(
                                                       std::chrono::duration<double>(max_seconds));
  }

  // Runs f with the lock held and the limits in force.
  template <typename F>
  auto with(F&& f) {
    const std::lock_guard lock(arena_->mutex());
    ExprPool& pool = arena_->pool();
    const uint64_t old = pool.limit();
    pool.set_limit(max_expressions_);
    pool.set_deadline(deadline_);
    struct Reset {
      ExprPool& pool;
      uint64_t limit;
      ~Reset() {
        pool.set_limit(limit);
        pool.set_deadline(std::chrono::steady_clock::time_point::max());
      }
    } reset{pool, old};
    try {
      return f(pool);
    } catch (const TooLarge&) {  // the pool knows how many there are in all, not how many are this constraint's
      if (pool.size() < max_expressions_) throw;
      throw TooLarge("more than " + std::to_string(own_expressions_) + " expressions (Limits.expressions)");
    }
  }
  // The same for what may take long: other threads of the interpreter go on meanwhile. f must not touch Python objects.
  template <typename F>
  auto search(F&& f) {
    const nb::gil_scoped_release release;
    return with(std::forward<F>(f));
  }
  Arena& arena() { return *arena_; }
  ExprId token(uint32_t id) {
    if (id >= vocabulary_->size()) throw std::invalid_argument("token id " + std::to_string(id) + " is out of range");
    names_tokens_ = true;
    return with([&](ExprPool& p) { return p.token(id); });
  }
  std::shared_ptr<Compiled> compile(ExprId root) {
    const ExprId settled = search([&](ExprPool& pool) {
      check(root);
      const ExprId e = arena_->settle(root);
      return e != ExprPool::kEmptyId && pool.alive(e) ? e : ExprPool::kEmptyId;
    });
    if (settled == ExprPool::kEmptyId)
      throw std::invalid_argument("the language is empty: no output satisfies the constraint");
    return std::make_shared<Compiled>(Compiled{vocabulary_, arena_, settled, names_tokens_});
  }
  void check(ExprId e) const {
    if (e >= arena_->pool().size()) throw std::invalid_argument("not an expression of this builder");
  }
  void check(const std::vector<ExprId>& list) const {
    for (const ExprId e : list) check(e);
  }
  void check_no_letters(ExprId e) const {
    check(e);
    if (arena_->pool().has(e, ExprPool::kLetters))
      throw std::invalid_argument("this question needs an expression without calls");
  }

 private:
  std::shared_ptr<Vocabulary> vocabulary_;
  std::shared_ptr<Arena> arena_;
  uint64_t own_expressions_, max_expressions_;
  std::chrono::steady_clock::time_point deadline_;
  bool names_tokens_ = false;
};

Spelling spelling_of(const std::string& name) {
  if (name == "utf8") return Spelling::kUtf8;
  if (name == "json") return Spelling::kJson;
  if (name == "json-canonical") return Spelling::kJsonCanonical;
  throw std::invalid_argument("unknown spelling '" + name + "': utf8, json or json-canonical");
}

std::vector<uint32_t> code_points(const nb::str& s) {
  std::vector<uint32_t> out;
  const Py_ssize_t n = PyUnicode_GetLength(s.ptr());
  for (Py_ssize_t i = 0; i < n; ++i) out.push_back(PyUnicode_ReadChar(s.ptr(), i));
  return out;
}

std::string_view view(nb::handle bytes) {
  char* data = nullptr;
  Py_ssize_t length = 0;
  if (PyBytes_AsStringAndSize(bytes.ptr(), &data, &length) != 0) throw nb::python_error();
  return {data, static_cast<size_t>(length)};
}

uint32_t count_limit(std::optional<uint64_t> n) {
  if (!n) return ExprPool::kUnbounded;
  if (*n >= ExprPool::kUnbounded) return ExprPool::kUnbounded - 1;
  return static_cast<uint32_t>(*n);
}

ItemRules item_rules(size_t kinds, const std::vector<std::vector<std::pair<uint32_t, uint32_t>>>& positions,
                     const std::vector<std::pair<uint64_t, std::optional<uint64_t>>>& counts) {
  if (positions.empty()) throw std::invalid_argument("positions must not be empty: the last one is for all others");
  if (counts.size() > ItemRules::kMostCounts) {
    throw std::invalid_argument("at most " + std::to_string(ItemRules::kMostCounts) + " counts");
  }
  ItemRules rules;
  for (const auto& [low, high] : counts) rules.counts.push_back({count_limit(low), count_limit(high)});
  for (const auto& position : positions) {
    auto& choices = rules.positions.emplace_back();
    for (const auto& [kind, counted] : position) {
      if (kind >= kinds) throw std::invalid_argument("there is no kind " + std::to_string(kind));
      choices.push_back({kind, counted});
    }
  }
  return rules;
}

ObjectSpec object_spec(Builder& b, ExprPool& pool, nb::sequence members, ExprId open, ExprId colon, ExprId comma,
                       ExprId close, uint64_t min_members, std::optional<uint64_t> max_members, bool ordered,
                       uint32_t obligations,
                       const std::vector<std::pair<uint32_t, std::vector<uint32_t>>>& dependencies) {
  ObjectSpec spec;
  for (const ExprId e : {open, colon, comma, close}) b.check(e);
  spec.open = open;
  spec.colon = colon;
  spec.comma = comma;
  spec.close = close;
  spec.min_members = count_limit(min_members);
  spec.max_members = count_limit(max_members);
  spec.ordered = ordered;
  spec.obligations = obligations;
  spec.dependencies = dependencies;
  for (nb::handle h : members) {
    const nb::tuple t = nb::cast<nb::tuple>(h);
    ObjectMember m;
    if (PyBytes_Check(t[0].ptr())) {
      m.literal = std::string(view(t[0]));
      m.key = pool.literal(m.literal);
    } else {
      m.key = nb::cast<ExprId>(t[0]);
      b.check(m.key);
      m.family = true;
    }
    m.required = nb::cast<bool>(t[1]);
    for (nb::handle value : nb::cast<nb::sequence>(t[2])) {
      const nb::tuple pair = nb::cast<nb::tuple>(value);
      m.values.push_back({nb::cast<ExprId>(pair[0]), nb::cast<uint64_t>(pair[1])});
      b.check(m.values.back().value);
    }
    spec.members.push_back(std::move(m));
  }
  return spec;
}

}  // namespace

void bind_builder(nb::module_& m) {
  nb::class_<Builder>(m, "Builder")
      .def(nb::init<std::shared_ptr<Vocabulary>, uint64_t, double>(), "vocabulary"_a, nb::kw_only(),
           "max_expressions"_a = 2'000'000, "max_seconds"_a = 30.0)
      .def_prop_ro("empty", [](Builder&) { return ExprPool::kEmptyId; })
      .def_prop_ro("epsilon", [](Builder&) { return ExprPool::kEpsilonId; })
      .def(
          "literal",
          [](Builder& b, const nb::bytes& data) { return b.with([&](ExprPool& p) { return p.literal(view(data)); }); },
          "data"_a)
      .def(
          "literals",
          [](Builder& b, nb::sequence words) {
            std::vector<std::string_view> views;
            views.reserve(nb::len(words));
            std::vector<nb::object> owners;  // a sequence may make its items when it is asked for them
            for (nb::handle word : words) {
              views.push_back(view(word));
              if (!nb::isinstance<nb::list>(words) && !nb::isinstance<nb::tuple>(words))
                owners.push_back(nb::borrow(word));
            }
            return b.with([&](ExprPool& p) { return p.words(std::move(views)); });
          },
          "words"_a)
      .def(
          "byte_set",
          [](Builder& b, const std::vector<std::pair<int, int>>& ranges) {
            ByteSet s;
            for (const auto& [low, high] : ranges) {
              if (low < 0 || high > 255) throw std::invalid_argument("a byte is between 0 and 255");
              if (low <= high) s = s | ByteSet::range(static_cast<uint8_t>(low), static_cast<uint8_t>(high));
            }
            return b.with([&](ExprPool& p) { return p.set(s); });
          },
          "ranges"_a)
      .def(
          "chars",
          [](Builder& b, const CodePointRanges& ranges, const std::string& spelling) {
            return b.with([&](ExprPool& p) { return b.arena().characters(ranges, spelling_of(spelling)); });
          },
          "ranges"_a, "spelling"_a = "utf8")
      .def(
          "text",
          [](Builder& b, const nb::str& s, const std::string& spelling) {
            return b.with([&](ExprPool& p) { return text(p, code_points(s), spelling_of(spelling)); });
          },
          "text"_a, "spelling"_a = "utf8")
      .def(
          "decimal",
          [](Builder& b, std::optional<std::string> minimum, std::optional<std::string> maximum, bool exclusive_minimum,
             bool exclusive_maximum, std::optional<std::string> multiple_of, bool integer, bool point, bool exponent,
             bool scientific, bool plain, std::optional<int> places, bool within_reach) {
            DecimalSpec spec;
            spec.minimum = std::move(minimum);
            spec.maximum = std::move(maximum);
            spec.exclusive_minimum = exclusive_minimum;
            spec.exclusive_maximum = exclusive_maximum;
            spec.multiple_of = std::move(multiple_of);
            spec.integer = integer;
            spec.point = point;
            spec.exponent = exponent;
            spec.scientific = scientific;
            spec.plain = plain;
            spec.places = places;
            spec.within_reach = within_reach;
            return b.with([&](ExprPool& p) {
              return p.add_machine("decimal " + canonical_key(spec), [&] { return make_decimal_machine(spec); });
            });
          },
          nb::kw_only(), "minimum"_a = nb::none(), "maximum"_a = nb::none(), "exclusive_minimum"_a = false,
          "exclusive_maximum"_a = false, "multiple_of"_a = nb::none(), "integer"_a = false, "point"_a = true,
          "exponent"_a = true, "scientific"_a = false, "plain"_a = true, "places"_a = nb::none(),
          "within_reach"_a = false)
      .def(
          "concat",
          [](Builder& b, const std::vector<ExprId>& parts) {
            return b.with([&](ExprPool& p) { return b.check(parts), p.concat(parts); });
          },
          "parts"_a)
      .def(
          "union",
          [](Builder& b, const std::vector<ExprId>& parts) {
            return b.with([&](ExprPool& p) { return b.check(parts), p.unite(parts); });
          },
          "parts"_a)
      .def(
          "intersection",
          [](Builder& b, const std::vector<ExprId>& parts) {
            return b.search([&](ExprPool& p) { return b.check(parts), p.intersect(parts); });
          },
          "parts"_a)
      .def(
          "complement",
          [](Builder& b, ExprId e) { return b.search([&](ExprPool& p) { return b.check(e), p.complement(e); }); },
          "e"_a)
      .def(
          "repeat",
          [](Builder& b, ExprId e, uint64_t low, std::optional<uint64_t> high) {
            if (high && *high < low) throw std::invalid_argument("repeat: low is above high");
            return b.with([&](ExprPool& p) { return b.check(e), p.repeat(e, count_limit(low), count_limit(high)); });
          },
          "e"_a, "low"_a, "high"_a.none())
      .def(
          "optional",
          [](Builder& b, ExprId e) { return b.with([&](ExprPool& p) { return b.check(e), p.optional(e); }); }, "e"_a)
      .def(
          "call",
          [](Builder& b, ExprId e) {
            return b.search([&](ExprPool& p) {
              b.check(e);
              return p.alive(e) ? p.call(e) : ExprPool::kEmptyId;
            });
          },
          "e"_a)
      .def(
          "rule",
          [](Builder& b, std::string name) {
            return b.with([&](ExprPool&) { return b.arena().new_rule(std::move(name)); });
          },
          "name"_a)
      .def(
          "define",
          [](Builder& b, ExprId rule, ExprId body) {
            b.with([&](ExprPool&) { b.check(rule), b.check(body), b.arena().define(rule, body); });
          },
          "rule"_a, "body"_a)
      .def("special_token", &Builder::token, "token_id"_a)
      .def(
          "object",
          [](Builder& b, nb::sequence members, ExprId open, ExprId colon, ExprId comma, ExprId close,
             uint64_t min_members, std::optional<uint64_t> max_members, bool ordered, uint32_t obligations,
             const std::vector<std::pair<uint32_t, std::vector<uint32_t>>>& dependencies) {
            return b.with([&](ExprPool& p) {
              return b.arena().object(object_spec(b, p, members, open, colon, comma, close, min_members, max_members,
                                                  ordered, obligations, dependencies));
            });
          },
          "members"_a, nb::kw_only(), "open"_a, "colon"_a, "comma"_a, "close"_a, "min_members"_a = 0,
          "max_members"_a = nb::none(), "ordered"_a = true, "obligations"_a = 0,
          "dependencies"_a = std::vector<std::pair<uint32_t, std::vector<uint32_t>>>{})
      .def(
          "unique_array",
          [](Builder& b, ExprId item, ExprId open, ExprId comma, ExprId close, const std::vector<ExprId>& prefix,
             uint64_t min_items, std::optional<uint64_t> max_items) {
            return b.search([&](ExprPool&) {
              b.check(prefix);
              for (const ExprId e : {item, open, comma, close}) b.check(e);
              return b.arena().unique_array(
                  {prefix, item, open, comma, close, count_limit(min_items), count_limit(max_items)});
            });
          },
          "item"_a, nb::kw_only(), "open"_a, "comma"_a, "close"_a, "prefix"_a = std::vector<ExprId>{},
          "min_items"_a = 0, "max_items"_a = nb::none())
      .def(
          "counted_array",
          [](Builder& b, std::vector<ExprId> kinds,
             const std::vector<std::vector<std::pair<uint32_t, uint32_t>>>& positions, ExprId open, ExprId comma,
             ExprId close, const std::vector<std::pair<uint64_t, std::optional<uint64_t>>>& counts, bool repeats,
             uint64_t min_items, std::optional<uint64_t> max_items, std::optional<ExprId> before_item) {
            ItemRules rules = item_rules(kinds.size(), positions, counts);
            rules.repeats = repeats;
            rules.min_items = count_limit(min_items);
            rules.max_items = count_limit(max_items);
            return b.search([&](ExprPool&) {
              b.check(kinds);
              const ExprId before = before_item.value_or(ExprPool::kEpsilonId);
              for (const ExprId e : {open, comma, close, before}) b.check(e);
              return b.arena().unique_array({std::move(kinds), ExprPool::kEmptyId, open, comma, close, rules.min_items,
                                             rules.max_items, before, std::move(rules)});
            });
          },
          "kinds"_a, "positions"_a, nb::kw_only(), "open"_a, "comma"_a, "close"_a,
          "counts"_a = std::vector<std::pair<uint64_t, std::optional<uint64_t>>>{}, "repeats"_a = false,
          "min_items"_a = 0, "max_items"_a = nb::none(), "before_item"_a = nb::none())
      .def(
          "memo_get",
          [](Builder& b, const std::string& key) -> std::optional<ExprId> {
            return b.with([&](ExprPool&) -> std::optional<ExprId> {
              const ExprId* e = b.arena().memo(key);
              return e ? std::optional<ExprId>(*e) : std::nullopt;
            });
          },
          "key"_a)
      .def(
          "memo_set",
          [](Builder& b, std::string key, ExprId e) {
            b.with([&](ExprPool&) { b.check(e), b.arena().set_memo(std::move(key), e); });
          },
          "key"_a, "e"_a)
      .def(
          "is_empty",
          [](Builder& b, ExprId e) { return b.search([&](ExprPool& p) { return b.check(e), !p.alive(e); }); }, "e"_a)
      .def(
          "is_nullable",
          [](Builder& b, ExprId e) { return b.with([&](ExprPool& p) { return b.check(e), p.nullable(e); }); }, "e"_a)
      .def(
          "count_words",
          [](Builder& b, ExprId e, uint64_t limit) {
            return b.search([&](ExprPool& p) { return b.check_no_letters(e), p.count_words(e, limit); });
          },
          "e"_a, "limit"_a)
      .def(
          "shortest",
          [](Builder& b, ExprId e) -> nb::object {
            std::string out;
            const bool found = b.search([&](ExprPool& p) { return b.check_no_letters(e), p.shortest(e, out); });
            return found ? nb::object(nb::bytes(out.data(), out.size())) : nb::none();
          },
          "e"_a)
      .def(
          "matches",
          [](Builder& b, ExprId e, const nb::bytes& data) {
            return b.search([&](ExprPool& p) { return b.check_no_letters(e), p.matches(e, view(data)); });
          },
          "e"_a, "data"_a)
      .def(
          "show", [](Builder& b, ExprId e) { return b.with([&](ExprPool& p) { return b.check(e), p.show(e); }); },
          "e"_a)
      .def("compile", &Builder::compile, "root"_a);
}

}  // namespace grammask
