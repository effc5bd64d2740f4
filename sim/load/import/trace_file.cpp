#include "sim/load/import/trace_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "sim/base/error.h"
#include "sim/base/printable.h"
#include "sim/load/import/event_kind.h"
#include "sim/load/import/packed_text.h"

namespace lockstep {
namespace {

constexpr std::int64_t latest_microsecond =
    3'000'000'000'000'000;  // differences in nanoseconds stay within 64 bits
constexpr std::int64_t longest_microseconds = 100'000'000'000;  // of an event: 28 hours
constexpr std::int64_t most_elements = 1'000'000'000'000;
constexpr std::size_t longest_name =
    300;  // of a kernel with all its template arguments: the beginning tells it
constexpr std::size_t most_told_keys = 1000;
constexpr std::size_t most_names = 1'000'000;
constexpr std::size_t most_lanes = 65'535;
constexpr std::size_t deepest_trace = 64;

// Where in the document the parser is.
enum class Place : std::uint8_t {
  document,
  events,
  event,
  arguments,
  devices,
  device,
  distributed,
  elsewhere
};

enum class Field : std::uint8_t {
  none,
  name,
  category,
  phase,
  start,
  duration,
  process,
  thread,
  external,
  correlation,
  stream,
  device,
  dims,
  type,
  collective,
  elements,
  group,
  sequence,
};

constexpr auto number_of_fields = static_cast<std::size_t>(Field::sequence) + 1;

struct FieldName {
  std::string_view key;
  Field field;
};

constexpr std::array event_fields{FieldName{"ph", Field::phase},    FieldName{"cat", Field::category},
                                  FieldName{"name", Field::name},   FieldName{"pid", Field::process},
                                  FieldName{"tid", Field::thread},  FieldName{"ts", Field::start},
                                  FieldName{"dur", Field::duration}};

constexpr std::array argument_fields{FieldName{"External id", Field::external},
                                     FieldName{"external id", Field::external},
                                     FieldName{"correlation", Field::correlation},
                                     FieldName{"stream", Field::stream},
                                     FieldName{"device", Field::device},
                                     FieldName{"Input Dims", Field::dims},
                                     FieldName{"Input type", Field::type},
                                     FieldName{"dtype", Field::type},
                                     FieldName{"Collective name", Field::collective},
                                     FieldName{"In msg nelems", Field::elements},
                                     FieldName{"Group size", Field::group},
                                     FieldName{"Sequence number", Field::sequence}};

template <std::size_t N>
Field field_of(std::string_view key, const std::array<FieldName, N>& fields) {
  for (const FieldName& entry : fields)
    if (entry.key == key)
      return entry.field;
  return Field::none;
}

struct Event {
  std::string name;
  std::string category;
  std::string phase;
  std::string lane;
  std::optional<Nanoseconds> start;
  Nanoseconds duration = 0;
  std::uint32_t external = 0;
  std::uint32_t correlation = 0;
  std::uint32_t sequence = 0;
  std::uint16_t stream = 0;
  std::uint16_t device = 0;
  std::int64_t elements = 0;
  std::string type;
  std::string collective;
  std::int32_t group = 0;

  void clear() {
    for (std::string* text : {&name, &category, &phase, &lane, &type, &collective}) text->clear();
    start.reset();
    duration = 0;
    external = correlation = sequence = 0;
    stream = device = 0;
    elements = 0;
    group = 0;
  }
};

// Texts by number, each kept once.
class Numbering {
 public:
  Numbering() { number(""); }

  std::uint32_t number(std::string_view text) {
    key_ = text.substr(0, longest_name);
    const auto [entry, is_new] = numbers_.try_emplace(key_, static_cast<std::uint32_t>(texts_.size()));
    if (is_new)
      texts_.push_back(key_);
    return entry->second;
  }
  std::size_t size() const { return texts_.size(); }
  std::vector<std::string> take() { return std::move(texts_); }

 private:
  std::vector<std::string> texts_;
  std::unordered_map<std::string, std::uint32_t> numbers_;
  std::string key_;
};

// The numbers of nested lists: what the first list of numbers multiplies to.
struct Dims {
  std::int64_t product = 1;
  bool has_number = false;
  bool is_closed = false;

  void add(std::int64_t size) {
    if (is_closed)
      return;
    has_number = true;
    product = size > 0 && product <= most_elements / size ? product * size : 0;
  }
  void close() { is_closed = is_closed || has_number; }
};

// Keys of arguments, each told once.
struct MetArguments {
  std::unordered_set<std::string> unread;
  std::array<bool, number_of_fields> are_read = {};

  bool is_new(Field field, const std::string& key) {
    if (field != Field::none)
      return !std::exchange(are_read[static_cast<std::size_t>(field)], true);
    return unread.size() < most_told_keys && unread.insert(key).second;
  }
};

// nlohmann's SAX interface: what is called while the text is parsed.
class TraceParser {
 public:
  TraceParser(PackedText& text, const std::string& file_name, TraceFile& trace)
      : text_(text), file_name_(file_name), trace_(trace) {}

  bool null() { return scalar(); }
  bool boolean(bool) { return scalar(); }
  bool number_integer(std::int64_t value) { return whole_number(value); }
  bool number_unsigned(std::uint64_t value) {
    constexpr auto most = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
    return whole_number(static_cast<std::int64_t>(std::min(value, most)));
  }
  bool number_float(double value, const std::string& digits);
  bool string(std::string& value);
  bool binary(std::vector<std::uint8_t>&) { return true; }
  bool start_object(std::size_t) { return open(true); }
  bool start_array(std::size_t) { return open(false); }
  bool end_object() { return close(); }
  bool end_array() { return close(); }
  bool key(std::string& value);
  bool parse_error(std::size_t position, const std::string&, const std::exception& error);

  bool has_events() const { return has_events_; }
  std::vector<std::string> take_names() { return names_.take(); }

 private:
  [[noreturn]] void fail(const std::string& found_and_expected) const;
  Place place() const { return places_.empty() ? Place::elsewhere : places_.back(); }
  Place inner_place(bool is_object) const;
  bool open(bool is_object);
  bool close();
  bool scalar();
  bool whole_number(std::int64_t value);
  bool is_time() const;
  void check_time(double microseconds) const;
  void set_time(Nanoseconds value);
  void set_number(std::int64_t value);
  void set_text(std::string& value);
  void set_distributed(const std::string& value);
  void note_key(const std::string& key, bool is_read);
  void end_event();
  void keep_cpu_event(Nanoseconds start);
  std::uint32_t keep_facts();
  std::uint16_t lane();

  PackedText& text_;
  const std::string& file_name_;
  TraceFile& trace_;
  Numbering names_;
  Numbering lanes_;
  std::vector<Place> places_;
  std::string key_;
  Field field_ = Field::none;
  Dims dims_;
  Event event_;
  MetArguments met_;
  std::int64_t event_index_ = -1;
  bool has_events_ = false;
  bool is_list_ = false;
};

void TraceParser::fail(const std::string& found_and_expected) const {
  const std::string where = event_index_ < 0
                                ? fmt::format("byte {}", text_.position())
                                : fmt::format("{}/{}", is_list_ ? "" : "/traceEvents", event_index_);
  throw ConfigError(fmt::format("{}: {}: {}", file_name_, where, found_and_expected));
}

bool TraceParser::parse_error(std::size_t position, const std::string&, const std::exception& error) {
  std::string reason =
      error.what();  // "[json.exception.parse_error.101] parse error at line 1, column 2: ..."
  reason = reason.substr(std::min(reason.size(), reason.find("] ") + 2));
  throw ConfigError(fmt::format("{}: byte {}: {}", file_name_, position,
                                printable_name(std::string_view(reason).substr(0, longest_name))));
}

Place TraceParser::inner_place(bool is_object) const {
  if (places_.empty())
    return is_object ? Place::document : Place::events;
  switch (place()) {
    case Place::document:
      return key_ == "traceEvents" && !is_object                                         ? Place::events
             : (key_ == "deviceProperties" || key_ == "computeProperties") && !is_object ? Place::devices
             : key_ == "distributedInfo" && is_object                                    ? Place::distributed
                                                                                         : Place::elsewhere;
    case Place::events:
      return is_object ? Place::event : Place::elsewhere;
    case Place::event:
      return is_object && key_ == "args" ? Place::arguments : Place::elsewhere;
    case Place::devices:
      return is_object ? Place::device : Place::elsewhere;
    default:
      return Place::elsewhere;
  }
}

bool TraceParser::open(bool is_object) {
  text_.note_progress();
  const Place inner = inner_place(is_object);
  if (places_.size() >= deepest_trace)
    fail("found more than 64 values within each other, expected a trace");
  if (place() == Place::events && inner != Place::event)
    fail("found a list, expected an event");
  if (inner == Place::events) {
    has_events_ = true;
    is_list_ = places_.empty();
  }
  if (inner == Place::event) {
    ++event_index_;
    event_.clear();
  }
  if (place() == Place::arguments && field_ == Field::dims)
    dims_ = {};
  places_.push_back(inner);
  return true;
}

bool TraceParser::close() {
  text_.note_progress();
  const Place inner = place();
  places_.pop_back();
  if (inner == Place::event)
    end_event();
  else if (inner == Place::events)
    event_index_ = -1;
  else if (inner == Place::elsewhere && field_ == Field::dims)
    dims_.close();
  if (inner == Place::elsewhere && place() == Place::arguments) {
    if (field_ == Field::dims && dims_.has_number && event_.elements == 0)
      event_.elements = dims_.product;
    field_ = Field::none;
  }
  return true;
}

void TraceParser::note_key(const std::string& key, bool is_read) {
  if (trace_.keys.size() < most_told_keys)
    trace_.keys.try_emplace(key, is_read);
}

bool TraceParser::key(std::string& value) {
  text_.note_progress();
  if (place() == Place::elsewhere)
    return true;
  key_ = value;
  field_ = Field::none;
  if (place() == Place::event) {
    field_ = field_of(key_, event_fields);
  } else if (place() == Place::arguments) {
    field_ = field_of(key_, argument_fields);
    if (met_.is_new(field_, key_))
      note_key("args." + printable_name(std::string_view(key_).substr(0, 100)), field_ != Field::none);
  } else if (place() == Place::document) {
    note_key(printable_name(key_.substr(0, 100)), key_ == "traceEvents" || key_ == "deviceProperties" ||
                                                      key_ == "computeProperties" ||
                                                      key_ == "distributedInfo");
  }
  return true;
}

bool TraceParser::scalar() {
  text_.note_progress();
  if (place() == Place::events)
    fail("found no object, expected an event");
  if (is_time())
    fail(fmt::format("{}: found no number, expected microseconds", key_));
  return true;
}

bool TraceParser::is_time() const {
  return place() == Place::event && (field_ == Field::start || field_ == Field::duration);
}

void TraceParser::check_time(double microseconds) const {
  const std::int64_t most = field_ == Field::start ? latest_microsecond : longest_microseconds;
  if (!(std::abs(microseconds) <= static_cast<double>(most)))
    fail(fmt::format("{}: found {}, expected microseconds, at most {}", key_, microseconds, most));
  if (field_ == Field::duration && microseconds < 0)
    fail(fmt::format("dur: found {} us, expected no negative time", microseconds));
}

void TraceParser::set_time(Nanoseconds value) {
  (field_ == Field::start ? event_.start.emplace() : event_.duration) = value;
}

bool TraceParser::number_float(double value, const std::string& digits) {
  text_.note_progress();
  if (!is_time())
    return scalar();
  check_time(value);
  const std::size_t point = digits.find('.');
  if (point == std::string::npos || digits.find_first_of("eE") != std::string::npos || digits[0] == '-') {
    set_time(std::llround(value * 1000));
    return true;
  }
  std::string fraction = digits.substr(point + 1, 3);
  fraction.resize(3, '0');
  set_time(std::stoll(digits.substr(0, point)) * 1000 + std::stoll(fraction));
  return true;
}

bool TraceParser::whole_number(std::int64_t value) {
  text_.note_progress();
  if (is_time()) {
    check_time(static_cast<double>(value));
    set_time(value * 1000);
    return true;
  }
  if (place() == Place::distributed && key_ == "world_size")
    trace_.world_size = std::clamp<std::int64_t>(value, 0, 10'000'000);
  else if (place() == Place::event || place() == Place::arguments || place() == Place::elsewhere)
    set_number(value);
  else
    return scalar();
  return true;
}

void TraceParser::set_number(std::int64_t value) {
  const auto as_id = static_cast<std::uint32_t>(value);
  const auto as_small = static_cast<std::uint16_t>(value);
  switch (field_) {
    case Field::process:
    case Field::thread:
      event_.lane += fmt::format("/{}", value);
      break;
    case Field::external:
      event_.external = as_id;
      break;
    case Field::correlation:
      event_.correlation = as_id;
      break;
    case Field::sequence:
      event_.sequence = value > 0 ? as_id : 0;
      break;
    case Field::stream:
      event_.stream = as_small;
      break;
    case Field::device:
      event_.device = as_small;
      break;
    case Field::dims:
      dims_.add(value);
      break;
    case Field::elements:
      event_.elements = std::clamp<std::int64_t>(value, 0, most_elements);
      break;
    case Field::group:
      event_.group = static_cast<std::int32_t>(std::clamp<std::int64_t>(value, 0, 10'000'000));
      break;
    default:
      break;
  }
}

bool TraceParser::string(std::string& value) {
  const bool is_device = place() == Place::device && key_ == "name" && trace_.devices.size() < 1000;
  if (is_device)
    trace_.devices.push_back(printable_name(value.substr(0, longest_name)));
  else if (place() == Place::distributed && key_ == "backend")
    trace_.backend = printable_name(value.substr(0, longest_name));
  else if (place() == Place::event || place() == Place::arguments ||
           (place() == Place::elsewhere && field_ == Field::type))
    set_text(value);
  return scalar();
}

void TraceParser::set_text(std::string& value) {
  switch (field_) {
    case Field::name:
      event_.name.swap(value);
      break;
    case Field::category:
      event_.category.swap(value);
      break;
    case Field::phase:
      event_.phase.swap(value);
      break;
    case Field::process:
    case Field::thread:
      event_.lane += "/";
      event_.lane += value;
      break;
    case Field::type:
      if (event_.type.empty())
        event_.type.swap(value);
      break;
    case Field::collective:
      event_.collective.swap(value);
      break;
    default:
      break;
  }
}

std::uint16_t TraceParser::lane() {
  if (lanes_.size() >= most_lanes)
    fail("found more than 65,535 threads, expected a trace of one process");
  return static_cast<std::uint16_t>(lanes_.number(event_.lane));
}

std::uint32_t TraceParser::keep_facts() {
  if (event_.elements == 0 && event_.collective.empty())
    return no_facts;
  trace_.facts.push_back({.elements = event_.elements,
                          .type = names_.number(event_.type),
                          .collective = names_.number(event_.collective),
                          .group = event_.group});
  return static_cast<std::uint32_t>(trace_.facts.size() - 1);
}

void TraceParser::keep_cpu_event(Nanoseconds start) {
  trace_.is_distributed_data_parallel |= event_.name == "DistributedDataParallel.forward";
  trace_.is_fully_sharded |=
      event_.name.starts_with("FullyShardedDataParallel.") || event_.name.starts_with("FSDP::");
  if (const auto kind = span_kind_of(event_.name)) {
    const bool has_facts = kind == SpanKind::gradient || kind == SpanKind::collective;
    trace_.spans.push_back({.start = start,
                            .end = start + event_.duration,
                            .name = names_.number(event_.name),
                            .facts = has_facts ? keep_facts() : no_facts,
                            .sequence = event_.sequence,
                            .lane = lane(),
                            .kind = *kind});
  }
  if (event_.external != 0)
    trace_.operators.push_back({.external = event_.external,
                                .name = names_.number(event_.name),
                                .facts = sends_messages(event_.name) ? keep_facts() : no_facts});
}

void TraceParser::end_event() {
  if (event_.phase != "X") {
    ++trace_.ignored[event_.phase == "s" || event_.phase == "f" ? "flows" : "marks and names"];
    return;
  }
  if (!event_.start)
    fail("found no \"ts\", expected the microsecond when it began");
  if (names_.size() > most_names)
    fail("found more than a million different names, expected a trace of training steps");
  const Nanoseconds start = *event_.start;
  switch (category_of(event_.category)) {
    case EventCategory::cpu:
      keep_cpu_event(start);
      break;
    case EventCategory::launch:
      trace_.launches.push_back({.start = start, .correlation = event_.correlation, .lane = lane()});
      break;
    case EventCategory::kernel:
      trace_.kernels.push_back({.start = start,
                                .end = start + event_.duration,
                                .name = names_.number(event_.name),
                                .correlation = event_.correlation,
                                .external = event_.external,
                                .facts = keep_facts(),
                                .stream = event_.stream,
                                .device = event_.device});
      break;
    case EventCategory::other:
      if (trace_.ignored.size() < most_told_keys)
        ++trace_.ignored[printable_name(event_.category.substr(0, 100))];
      break;
  }
}

}  // namespace

TraceFile read_trace(const ImportRequest& request) {
  TraceFile trace;
  PackedText text(request.file, request.file_name);
  if (!text.has_more())
    throw ConfigError(fmt::format("{}: found an empty file, expected a trace", request.file_name));
  TraceParser parser(text, request.file_name, trace);
  nlohmann::json::sax_parse(PackedTextIterator(text), PackedTextIterator(), &parser);
  if (!parser.has_events())
    throw ConfigError(fmt::format("{}: found no \"traceEvents\", expected a trace", request.file_name));
  trace.names = parser.take_names();
  return trace;
}

}  // namespace lockstep
