// SPDX-License-Identifier: Apache-2.0
//
// shardwright show: the numbers of a tensor or of a slice of it, as numpy prints them, or the text
// of an object.
#include <fmt/format.h>
#include <CLI/CLI.hpp>
#include <algorithm>
#include <nlohmann/json.hpp>

#include "cli/array_text.h"
#include "cli/entries.h"
#include "cli/session.h"
#include "cli/slice_reader.h"
#include "cli/text.h"

namespace shardwright::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr uint64_t kShownObjectBytes = 256;  // of objects that are no text

struct ShowOptions {
  std::string path;
  std::string name;
  std::string slice;
};

std::string dumped(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

// A slice that fits the tensor, as a user would write it.
std::string example_slice(const TensorFacts& tensor) {
  std::string text;
  for (const int64_t extent : tensor.shape)
    text += text.empty() ? fmt::format("0:{}", std::min<int64_t>(extent, 4)) : ", :";
  return tensor.listed + "[" + text + "]";
}

int show_tensor(Session& session, const Checkpoint& checkpoint, const TensorFacts& tensor,
                std::string_view slice, const std::string& path) {
  std::vector<DimensionSlice> slices = whole_slice(tensor.shape);
  std::string problem;
  if (!slice.empty() && !parse_slice(slice, tensor.shape, &slices, &problem)) {
    fail_usage(fmt::format("the slice {} does not fit {}", slice, tensor.listed),
               fmt::format("{}; the shape is {}", problem, shape_text(tensor.shape)),
               tensor.shape.empty()
                   ? "it has no dimensions: leave the slice out"
                   : fmt::format("write it as numpy does: shardwright show {} {}", shell_word(path),
                                 shell_word(example_slice(tensor))));
  }
  const SliceValues values = read_slice({checkpoint, path}, tensor, slices, !session.options.json);
  if (session.options.json) {
    std::vector<std::string> numbers;
    numbers.reserve(values.elements.size());
    for (const Element& element : values.elements)
      numbers.push_back(element_json(tensor.type, element));
    const Json head{{"schema", 1},
                    {"name", tensor.name},
                    {"rank", tensor.rank},
                    {"dtype", tensor.dtype},
                    {"shape", tensor.shape},
                    {"slice", slice_text(slices)},
                    {"slice_shape", values.shape}};
    std::string text = dumped(head);
    text.pop_back();
    Session::print_line(text + ",\"values\":" +
                        (values.count == 0 ? "[]" : array_json(values.stored, numbers)) + "}");
    return kExitFine;
  }
  std::string head = fmt::format("{}: {} {}, {}", printable(tensor.listed), tensor.dtype,
                                 shape_text(tensor.shape), size_text(tensor.bytes));
  if (!slice.empty()) head += fmt::format(", slice {}", slice_text(slices));
  Session::print_line(head);
  Session::print_line(
      array_text(values.stored, values.cut,
                 element_words(tensor.type, values.elements, values.stored.empty())));
  return kExitFine;
}

// Sixteen bytes per line.
std::string hexadecimal(std::string_view bytes) {
  std::string text;
  for (size_t at = 0; at < std::min<size_t>(bytes.size(), kShownObjectBytes); at += 16) {
    text += fmt::format("{:08x} ", at);
    for (const char byte : bytes.substr(at, 16))
      text += fmt::format(" {:02x}", static_cast<unsigned char>(byte));
    text += "\n";
  }
  if (bytes.size() > kShownObjectBytes)
    text += fmt::format("... {} in all\n", size_text(bytes.size()));
  return text;
}

// What a pickle or an archive of torch.save would be; "" for anything else.
std::string described_value(const Checkpoint& checkpoint, const ObjectFacts& object,
                            const std::string& path) {
  if (object.content_type != "application/python-pickle" &&
      object.content_type != "application/x-torch-save")
    return "";
  const Buffer buffer = made_by<shw_buffer, shw_buffer_release>(
      [&](shw_buffer** out, shw_error** error) {
        return shw_checkpoint_describe_object(checkpoint.get(), object.index, out, error);
      },
      "describe the object", Place::of_checkpoint(path, object.listed));
  const Json said = Json::parse(text_of(buffer), nullptr, false);
  return said.is_discarded() ? "" : dumped(said["value"]);
}

int show_object(Session& session, const Checkpoint& checkpoint, const ObjectFacts& object,
                const std::string& path) {
  const Buffer buffer = made_by<shw_buffer, shw_buffer_release>(
      [&](shw_buffer** out, shw_error** error) {
        return shw_checkpoint_read_objects(checkpoint.get(), &object.index, 1, out, error);
      },
      "read the object", Place::of_checkpoint(path, object.listed));
  const std::string_view bytes = text_of(buffer);
  const bool is_json = object.content_type == "application/json";
  const std::string described = is_json ? "" : described_value(checkpoint, object, path);
  if (session.options.json) {
    Json out{{"schema", 1},
             {"name", object.name},
             {"rank", object.rank},
             {"content_type", object.content_type},
             {"bytes", object.bytes}};
    const Json value =
        is_json ? Json::parse(bytes, nullptr, false) : Json(Json::value_t::discarded);
    if (value.is_discarded()) {
      std::string digits;
      for (const char byte : bytes)
        digits += fmt::format("{:02x}", static_cast<unsigned char>(byte));
      if (!described.empty()) out["description"] = Json::parse(described, nullptr, false);
      out["hex"] = digits;
    } else {
      out["value"] = value;
    }
    Session::print_line(dumped(out));
    return kExitFine;
  }
  Session::print_line(fmt::format("{}: {}, {}", printable(object.listed),
                                  printable(object.content_type), size_text(object.bytes)));
  if (!described.empty()) {
    const Json value = Json::parse(described, nullptr, false);
    Session::print_line(printable(value.is_discarded() ? described : dumped(value)));
    return kExitFine;
  }
  const bool is_text = is_json || object.content_type.starts_with("text/");
  Session::print(is_text ? printable(bytes) + "\n" : hexadecimal(bytes));
  return kExitFine;
}

int show(Session& session, const ShowOptions& options) {
  const Checkpoint checkpoint = session.open(options.path);
  const std::vector<TensorFacts> tensors = list_tensors(checkpoint);
  const std::vector<ObjectFacts> objects = list_objects(checkpoint);
  const NamedEntry entry = find_entry(checkpoint, tensors, objects, options.name, options.path);
  const std::string slice = std::string(entry.rest) + options.slice;
  if (entry.tensor != nullptr)
    return show_tensor(session, checkpoint, *entry.tensor, slice, options.path);
  if (!slice.empty()) {
    fail_usage(entry.object->listed + " is an object and has no slices",
               "only tensors can be sliced", "leave the slice out");
  }
  return show_object(session, checkpoint, *entry.object, options.path);
}

}  // namespace

void add_show(CLI::App& app, Session& session, Run* run) {
  CLI::App* command = app.add_subcommand("show", "Print the numbers of a tensor, or an object");
  auto options = std::make_shared<ShowOptions>();
  command->add_option("PATH", options->path, "Checkpoint")->required();
  command
      ->add_option("NAME", options->name, "Name, with a slice behind it when wanted: 'w[0:4, -1]'")
      ->required();
  command->add_option("--slice", options->slice, "Slice, for names that end in brackets: '[0:4]'");
  add_as_option(*command, session);
  add_step_option(*command, session);
  add_shared_options(*command, session);
  command->callback(
      [&session, run, options] { *run = [&session, options] { return show(session, *options); }; });
}

}  // namespace shardwright::cli
