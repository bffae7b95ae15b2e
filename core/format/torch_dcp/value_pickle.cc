// SPDX-License-Identifier: Apache-2.0
//
// The text is read twice: what a container is (its only key may tell) and how many parts it has is
// known at its end, and has to be known at its beginning. What is kept between has 4 bytes for each
// container and nothing for what is in it.
#include "core/format/torch_dcp/value_pickle.h"

#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "core/format/archive/pickle_export.h"
#include "core/format/archive/pickle_writer.h"
#include "core/format/torch_dcp/byte_items.h"

namespace shardwright::format::torch_dcp {
namespace {

using archive::PickleProtocol;
using archive::PickleWriter;

constexpr size_t kMaxDepth = 256;
constexpr uint32_t kPartsAtOnce = 1000;  // as Python's pickler fills containers
constexpr size_t kMaxIntegerDigits = 4096;
constexpr int kTooLarge = 406;  // the parser's word for numbers beyond a double

// A value that holds no others.
struct Leaf {
  enum class Kind : uint8_t { kNull, kBool, kInteger, kLong, kReal, kText };
  Kind kind = Kind::kNull;
  bool truth = false;
  int64_t integer = 0;
  double real = 0;
  std::string_view text = {};  // of kText, or the digits of kLong
};

std::optional<double> special_real(std::string_view text) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  if (text == "nan") return std::numeric_limits<double>::quiet_NaN();
  if (text == "inf" || text == "-inf") return text == "inf" ? kInfinity : -kInfinity;
  return std::nullopt;
}

// Events of the parser, those of numbers as one.
class Events : public nlohmann::json_sax<nlohmann::json> {
 public:
  virtual void leaf(const Leaf& value) = 0;
  virtual void open(bool is_map) = 0;
  virtual void name(std::string_view key) = 0;
  virtual void close() = 0;

  bool null() final { return take({}); }
  bool boolean(bool value) final { return take({.kind = Leaf::Kind::kBool, .truth = value}); }
  bool number_integer(int64_t value) final {
    return take({.kind = Leaf::Kind::kInteger, .integer = value});
  }
  bool number_unsigned(uint64_t value) final {
    if (value <= static_cast<uint64_t>(std::numeric_limits<int64_t>::max()))
      return number_integer(static_cast<int64_t>(value));
    return take({.kind = Leaf::Kind::kLong, .text = fmt::to_string(value)});
  }
  // Integers of more than 64 bits come this way.
  bool number_float(double value, const std::string& digits) final {
    const bool is_integer = digits.find_first_of(".eE") == std::string::npos;
    if (is_integer && digits.size() <= kMaxIntegerDigits)
      return take({.kind = Leaf::Kind::kLong, .text = digits});
    return take({.kind = Leaf::Kind::kReal, .real = value});
  }
  bool string(std::string& value) final { return take({.kind = Leaf::Kind::kText, .text = value}); }
  bool binary(binary_t&) final { return false; }
  bool start_object(std::size_t) final { return go_down(true); }
  bool key(std::string& text) final {
    name(text);
    return true;
  }
  bool end_object() final { return go_up(); }
  bool start_array(std::size_t) final { return go_down(false); }
  bool end_array() final { return go_up(); }
  bool parse_error(std::size_t position, const std::string&,
                   const nlohmann::detail::exception& what) final {
    failure_ = invalid_argument(
        what.id == kTooLarge
            ? fmt::format(
                  "JSON has a number beyond 1.8e308 (it ends at byte {}), which this format "
                  "does not take: store it as text",
                  position)
            : fmt::format("bytes that should be JSON are none (at byte {})", position));
    return false;
  }

  // Why parsing ended early.
  const Status& failure() const { return failure_; }

 private:
  bool take(const Leaf& value) {
    leaf(value);
    return true;
  }
  bool go_down(bool is_map) {
    if (depth_++ >= kMaxDepth) {
      failure_ = invalid_argument(fmt::format("JSON is deeper than {} levels", kMaxDepth));
      return false;
    }
    open(is_map);
    return true;
  }
  bool go_up() {
    --depth_;
    close();
    return true;
  }

  size_t depth_ = 0;
  Status failure_;
};

// What a container turns out to be when it ends, in 4 bytes.
struct Shape {
  enum class Form : uint8_t {
    kPlain,
    kTag,    // {"$tuple": [...]} and its like: only what is in it is written
    kTuple,  // the list in one
    kPairs,  // the list of pairs in {"$map": [...]}
  };
  uint32_t count : 30 = 0;  // parts, of a text of less than 1 GiB
  Form form : 2 = Form::kPlain;
};
static_assert(sizeof(Shape) == 4);
constexpr uint32_t kMostParts = (1U << 30) - 1;

// The first reading: shapes of all containers in the order in which they begin.
class ShapeFinder final : public Events {
 public:
  void leaf(const Leaf& value) override {
    const bool is_text = value.kind == Leaf::Kind::kText;
    add({.is_special = is_text && special_real(value.text).has_value(), .can_be_key = true});
  }
  void open(bool is_map) override {
    open_.push_back({.number = shapes_.size(), .is_map = is_map});
    shapes_.emplace_back();
  }
  void name(std::string_view key) override { open_.back().tag = key; }
  void close() override {
    const Open closed = std::move(open_.back());
    open_.pop_back();
    shapes_[closed.number].count = closed.count & kMostParts;
    add(closed.is_map ? mapping(closed) : list(closed));
  }

  std::vector<Shape> take() { return std::move(shapes_); }

 private:
  // What a container knows of a part.
  struct Part {
    bool is_list = false;
    bool is_special = false;  // text that {"$float": ...} takes
    bool can_be_key = false;  // Python has no lists and mappings as keys
    bool is_pair = false;     // a list of two, of which the first can be a key
    bool has_keys = false;    // a list of what can be keys
    bool has_pairs = false;   // a list of pairs
    size_t number = 0;        // of its shape
  };
  struct Open {
    size_t number = 0;
    bool is_map = false;
    std::string tag = {};  // the last key
    uint32_t count = 0;
    bool all_keys = true;
    bool all_pairs = true;
    bool first_is_key = false;
    Part last = {};
  };

  void add(const Part& part) {
    if (open_.empty()) return;
    Open& to = open_.back();
    if (to.count++ == 0) to.first_is_key = part.can_be_key;
    to.all_keys = to.all_keys && part.can_be_key;
    to.all_pairs = to.all_pairs && part.is_pair;
    to.last = part;
  }
  static Part list(const Open& closed) {
    return {.is_list = true,
            .is_pair = closed.count == 2 && closed.first_is_key,
            .has_keys = closed.all_keys,
            .has_pairs = closed.all_pairs,
            .number = closed.number};
  }
  Part mapping(const Open& closed) {
    const Part& inner = closed.last;
    if (closed.count != 1) return {};
    const bool is_tuple = closed.tag == "$tuple" && inner.is_list;
    const bool is_pairs = closed.tag == "$map" && inner.is_list && inner.has_pairs;
    const bool is_real = closed.tag == "$float" && inner.is_special;
    if (!is_tuple && !is_pairs && !is_real) return {};
    shapes_[closed.number].form = Shape::Form::kTag;
    if (is_tuple) shapes_[inner.number].form = Shape::Form::kTuple;
    if (is_pairs) shapes_[inner.number].form = Shape::Form::kPairs;
    return {.can_be_key = is_real || (is_tuple && inner.has_keys)};
  }

  std::vector<Shape> shapes_;
  std::vector<Open> open_;
};

// The second reading.
class ValuePickler final : public Events {
 public:
  explicit ValuePickler(std::vector<Shape> shapes)
      : shapes_(std::move(shapes)), pickle_(PickleProtocol::k2) {}

  void leaf(const Leaf& value) override {
    begin_part();
    write(value);
    end_part();
  }
  void open(bool is_map) override {
    const Shape shape = shapes_[next_++];
    const bool is_pair = !open_.empty() && open_.back().mode == Mode::kPairs;
    begin_part();
    const Mode mode = is_pair ? Mode::kPair : mode_of(shape, is_map);
    if (mode == Mode::kList) pickle_.empty_list().memoize();
    if (mode == Mode::kMap || mode == Mode::kPairs) pickle_.empty_dict().memoize();
    if (mode == Mode::kTuple && shape.count > 3) pickle_.mark();
    open_.push_back({mode, shape.count, 0});
  }
  void name(std::string_view key) override {
    if (open_.back().mode == Mode::kTag) return;
    mark_batch();
    write_text(key);
  }
  void close() override {
    const Open closed = open_.back();
    open_.pop_back();
    if (closed.mode == Mode::kTuple) end_tuple(closed.count);
    end_part();
  }

  std::string take() { return std::move(pickle_).finish(); }

 private:
  enum class Mode : uint8_t { kList, kMap, kTuple, kPairs, kPair, kTag };
  struct Open {
    Mode mode = Mode::kList;
    uint32_t count = 0;
    uint32_t done = 0;
  };

  static Mode mode_of(Shape shape, bool is_map) {
    switch (shape.form) {
      case Shape::Form::kTag:
        return Mode::kTag;
      case Shape::Form::kTuple:
        return Mode::kTuple;
      case Shape::Form::kPairs:
        return Mode::kPairs;
      case Shape::Form::kPlain:
        break;
    }
    return is_map ? Mode::kMap : Mode::kList;
  }

  // As Python's pickler: one alone without a mark.
  void mark_batch() {
    const Open& in = open_.back();
    if (in.done % kPartsAtOnce == 0 && in.count - in.done > 1) pickle_.mark();
  }
  void begin_part() {
    if (open_.empty()) return;
    const Mode mode = open_.back().mode;
    if (mode == Mode::kList || mode == Mode::kPairs) mark_batch();
  }
  void end_part() {
    if (open_.empty()) return;
    Open& in = open_.back();
    ++in.done;
    if (in.done % kPartsAtOnce != 0 && in.done != in.count) return;
    const bool many = (in.done - 1) % kPartsAtOnce > 0;
    if (in.mode == Mode::kList) many ? pickle_.appends_to_mark() : pickle_.append();
    if (in.mode == Mode::kMap || in.mode == Mode::kPairs)
      many ? pickle_.set_items_to_mark() : pickle_.set_item();
  }
  void end_tuple(uint32_t count) {
    if (count == 0) {
      pickle_.empty_tuple();
      return;
    }
    count > 3 ? pickle_.tuple_to_mark() : pickle_.tuple(count);
    pickle_.memoize();
  }

  void write(const Leaf& value) {
    switch (value.kind) {
      case Leaf::Kind::kNull:
        pickle_.none();
        return;
      case Leaf::Kind::kBool:
        pickle_.boolean(value.truth);
        return;
      case Leaf::Kind::kInteger:
        pickle_.integer(value.integer);
        return;
      case Leaf::Kind::kLong:
        pickle_.integer_of_digits(value.text);
        return;
      case Leaf::Kind::kReal:
        pickle_.real(value.real);
        return;
      case Leaf::Kind::kText:
        const bool in_tag = !open_.empty() && open_.back().mode == Mode::kTag;
        in_tag ? static_cast<void>(pickle_.real(*special_real(value.text)))
               : write_text(value.text);
        return;
    }
  }
  void write_text(std::string_view text) { pickle_.text(text).memoize(); }

  const std::vector<Shape> shapes_;
  size_t next_ = 0;
  PickleWriter pickle_;
  std::vector<Open> open_;
};

}  // namespace

Result<std::string> pickle_of_json(std::string_view text) {
  ShapeFinder finder;
  if (!nlohmann::json::sax_parse(text, &finder)) return finder.failure();
  ValuePickler pickler(finder.take());
  if (!nlohmann::json::sax_parse(text, &pickler)) return pickler.failure();
  return pickler.take();
}

bool is_stored_bare(std::string_view content_type) {
  return content_type == kTorchSaveType;
}

Result<std::vector<std::byte>> object_item(Framing framing, std::string_view content_type,
                                           std::span<const std::byte> bytes) {
  if (content_type == archive::kPickleType) return wrap_value(framing, bytes);
  std::string pickle;
  if (content_type == archive::kJsonType) {
    SHW_ASSIGN_OR_RETURN(
        pickle, pickle_of_json({reinterpret_cast<const char*>(bytes.data()), bytes.size()}));
  } else {
    PickleWriter writer(PickleProtocol::k2);
    writer.bytes(bytes);
    pickle = std::move(writer).finish();
  }
  return wrap_value(framing, std::as_bytes(std::span(pickle)));
}

}  // namespace shardwright::format::torch_dcp
