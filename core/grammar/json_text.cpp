#include "grammar/json_text.hpp"

#include <algorithm>
#include <cstdint>

namespace grammask {

namespace {

constexpr int kMaxNesting = 2000;

class Reader {
 public:
  explicit Reader(std::string_view s) : s_(s) {}

  bool document(JsonText& out) { return value(out, 0) && (blank(), at_ == s_.size()); }

 private:
  void blank() {
    while (at_ < s_.size() && (s_[at_] == ' ' || s_[at_] == '\t' || s_[at_] == '\n' || s_[at_] == '\r')) ++at_;
  }
  bool take(char c) {
    blank();
    if (at_ >= s_.size() || s_[at_] != c) return false;
    ++at_;
    return true;
  }
  bool word(std::string_view w) {
    if (s_.substr(at_, w.size()) != w) return false;
    at_ += w.size();
    return true;
  }

  bool value(JsonText& out, int depth) {
    blank();
    if (at_ >= s_.size() || depth > kMaxNesting) return false;
    switch (s_[at_]) {
      case 'n': out.kind = JsonText::Kind::kNull; return word("null");
      case 't': out.kind = JsonText::Kind::kTrue; return word("true");
      case 'f': out.kind = JsonText::Kind::kFalse; return word("false");
      case '"': out.kind = JsonText::Kind::kString; return string(out.scalar);
      case '[': {
        out.kind = JsonText::Kind::kArray;
        ++at_;
        if (take(']')) return true;
        do {
          out.items.emplace_back();
          if (!value(out.items.back(), depth + 1)) return false;
        } while (take(','));
        return take(']');
      }
      case '{': {
        out.kind = JsonText::Kind::kObject;
        ++at_;
        if (take('}')) return true;
        do {
          blank();
          out.members.emplace_back();
          if (!string(out.members.back().first) || !take(':') || !value(out.members.back().second, depth + 1))
            return false;
        } while (take(','));
        std::sort(out.members.begin(), out.members.end(),
                  [](const auto& a, const auto& b) { return a.first < b.first; });
        return take('}');
      }
      default: out.kind = JsonText::Kind::kNumber; return number(out.scalar);
    }
  }

  static void append_utf8(std::string& out, uint32_t c) {
    if (c < 0x80) {
      out.push_back(static_cast<char>(c));
    } else if (c < 0x800) {
      out.push_back(static_cast<char>(0xc0 | c >> 6));
      out.push_back(static_cast<char>(0x80 | (c & 0x3f)));
    } else if (c < 0x10000) {
      out.push_back(static_cast<char>(0xe0 | c >> 12));
      out.push_back(static_cast<char>(0x80 | (c >> 6 & 0x3f)));
      out.push_back(static_cast<char>(0x80 | (c & 0x3f)));
    } else {
      out.push_back(static_cast<char>(0xf0 | c >> 18));
      out.push_back(static_cast<char>(0x80 | (c >> 12 & 0x3f)));
      out.push_back(static_cast<char>(0x80 | (c >> 6 & 0x3f)));
      out.push_back(static_cast<char>(0x80 | (c & 0x3f)));
    }
  }

  bool hex4(uint32_t& out) {
    out = 0;
    for (int i = 0; i < 4; ++i, ++at_) {
      if (at_ >= s_.size()) return false;
      const char c = s_[at_];
      const int d = c >= '0' && c <= '9'   ? c - '0'
                    : c >= 'a' && c <= 'f' ? c - 'a' + 10
                    : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                           : -1;
      if (d < 0) return false;
      out = out << 4 | static_cast<uint32_t>(d);
    }
    return true;
  }

  bool string(std::string& out) {
    if (at_ >= s_.size() || s_[at_] != '"') return false;
    for (++at_; at_ < s_.size();) {
      const char c = s_[at_++];
      if (c == '"') return true;
      if (c != '\\') {
        out.push_back(c);
        continue;
      }
      if (at_ >= s_.size()) return false;
      const char e = s_[at_++];
      switch (e) {
        case 'b': out.push_back('\b'); break;
        case 'f': out.push_back('\f'); break;
        case 'n': out.push_back('\n'); break;
        case 'r': out.push_back('\r'); break;
        case 't': out.push_back('\t'); break;
        case 'u': {
          uint32_t unit = 0;
          if (!hex4(unit)) return false;
          if (unit >= 0xd800 && unit < 0xdc00 && s_.substr(at_, 2) == "\\u") {
            at_ += 2;
            uint32_t low = 0;
            if (!hex4(low) || low < 0xdc00 || low > 0xdfff) return false;
            unit = 0x10000 + ((unit - 0xd800) << 10) + (low - 0xdc00);
          }
          append_utf8(out, unit);
          break;
        }
        default: out.push_back(e);
      }
    }
    return false;
  }

  // digits × 10^exponent with no leading or trailing zeros in the digits; "0" for zero.
  bool number(std::string& out) {
    const bool negative = at_ < s_.size() && s_[at_] == '-';
    if (negative) ++at_;
    std::string digits;
    int64_t exponent = 0;
    bool point = false, any = false;
    for (; at_ < s_.size(); ++at_) {
      const char c = s_[at_];
      if (c >= '0' && c <= '9') {
        digits.push_back(c);
        any = true;
        exponent -= point;
      } else if (c == '.' && !point) {
        point = true;
      } else {
        break;
      }
    }
    if (!any) return false;
    std::string written;
    if (at_ < s_.size() && (s_[at_] == 'e' || s_[at_] == 'E')) {
      ++at_;
      bool minus = false;
      if (at_ < s_.size() && (s_[at_] == '+' || s_[at_] == '-')) minus = s_[at_++] == '-';
      for (; at_ < s_.size() && s_[at_] >= '0' && s_[at_] <= '9'; ++at_) {
        if (!written.empty() || s_[at_] != '0') written.push_back(s_[at_]);
      }
      // Beyond 17 digits the exponent dwarfs any text length: clip it, keeping its sign.
      if (written.size() > 17) written = std::string(17, '9');
      const int64_t e = written.empty() ? 0 : std::stoll(written);
      exponent += minus ? -e : e;
    }
    digits.erase(0, std::min(digits.find_first_not_of('0'), digits.size()));
    while (!digits.empty() && digits.back() == '0') {
      digits.pop_back();
      ++exponent;
    }
    out = digits.empty() ? "0" : (negative ? "-" : "") + digits + (exponent ? "e" + std::to_string(exponent) : "");
    return true;
  }

  std::string_view s_;
  size_t at_ = 0;
};

}  // namespace

std::string JsonText::canonical() const {
  const auto sized = [](const std::string& s) { return std::to_string(s.size()) + ":" + s; };
  std::string out(1, "nftdsao"[static_cast<int>(kind)]);
  if (kind == Kind::kNumber || kind == Kind::kString) return out + sized(scalar);
  if (kind == Kind::kArray) out += std::to_string(items.size()) + "[";
  for (const JsonText& i : items) out += i.canonical();
  if (kind == Kind::kObject) out += std::to_string(members.size()) + "{";
  for (const auto& [key, value] : members) out += sized(key) + value.canonical();
  return out;
}

std::optional<JsonText> parse_json_text(std::string_view bytes) {
  JsonText out;
  if (!Reader(bytes).document(out)) return std::nullopt;
  return out;
}

}  // namespace grammask
