#include "validate/harness/device/convolution_choice.h"

#include <fmt/format.h>

#include <array>
#include <nlohmann/json.hpp>

#include "sim/base/error.h"
#include "validate/harness/device/type_name.h"

namespace lockstep::harness {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::array directions{ConvolutionDirection::forward, ConvolutionDirection::input_gradient,
                                ConvolutionDirection::weight_gradient};
constexpr std::array types{Type::fp32, Type::fp16, Type::bf16};

Json to_json(const ConvolutionChoice& choice) {
  const Convolution& shape = choice.shape;
  return {{"batch", shape.batch},
          {"height", shape.height},
          {"width", shape.width},
          {"inputs", shape.inputs},
          {"outputs", shape.outputs},
          {"kernel", shape.kernel},
          {"stride", shape.stride},
          {"padding", shape.padding},
          {"precision", name_of(choice.type)},
          {"direction", name_of(choice.direction)},
          {"algorithm", choice.algorithm.empty() ? Json(nullptr) : Json(choice.algorithm)},
          {"math", choice.math},
          {"workspace_bytes", choice.workspace_bytes}};
}

// The one of `all` that is called so.
template <class All, class Name>
auto named(const All& all, const std::string& text, Name name) {
  for (const auto& one : all) {
    if (text == name(one))
      return one;
  }
  throw EnvironmentError(
      fmt::format("rank 0's choice of convolutions names \"{}\", which is not known here", text));
}

ConvolutionChoice choice_in(const Json& object) {
  const Json& algorithm = object.at("algorithm");
  return {.shape = {.batch = object.at("batch"),
                    .height = object.at("height"),
                    .width = object.at("width"),
                    .inputs = object.at("inputs"),
                    .outputs = object.at("outputs"),
                    .kernel = object.at("kernel"),
                    .stride = object.at("stride"),
                    .padding = object.at("padding")},
          .type = named(types, object.at("precision"), [](Type type) { return name_of(type); }),
          .direction = named(directions, object.at("direction"),
                             [](ConvolutionDirection direction) { return name_of(direction); }),
          .algorithm = algorithm.is_null() ? std::string() : algorithm.get<std::string>(),
          .math = object.at("math"),
          .workspace_bytes = object.at("workspace_bytes")};
}

}  // namespace

const char* name_of(ConvolutionDirection direction) {
  if (direction == ConvolutionDirection::forward)
    return "forward";
  return direction == ConvolutionDirection::input_gradient ? "input_gradient" : "weight_gradient";
}

std::string to_text(const std::vector<ConvolutionChoice>& choices) {
  Json list = Json::array();
  for (const ConvolutionChoice& choice : choices) list.push_back(to_json(choice));
  return list.dump();
}

std::vector<ConvolutionChoice> convolution_choices_in(const std::string& text) {
  std::vector<ConvolutionChoice> choices;
  try {
    for (const Json& object : Json::parse(text)) choices.push_back(choice_in(object));
  } catch (const Json::exception& error) {
    throw EnvironmentError(fmt::format("rank 0's choice of convolutions cannot be read: {}", error.what()));
  }
  return choices;
}

}  // namespace lockstep::harness
