// The readers: a new one is a line of `readers()`, with seeds in the repository or in tests/fuzz/seeds/NAME.

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string_view>

#include "sim/base/check.h"
#include "sim/base/error.h"
#include "sim/base/json_reader.h"
#include "sim/base/quantity_text.h"
#include "sim/load/error_model_json.h"
#include "sim/load/hardware/kernel_constants_json.h"
#include "sim/load/hardware/machine_parts.h"
#include "sim/load/hardware/read_hardware.h"
#include "sim/load/import/import_file.h"
#include "sim/load/load.h"
#include "sim/load/overrides.h"
#include "sim/load/read_model.h"
#include "sim/load/reading/store_shelf.h"
#include "sim/study/answers/stated_scenario.h"
#include "sim/study/answers/sweep_grid.h"
#include "sim/study/answers/sweep_journal.h"
#include "sim/study/answers/sweep_question.h"
#include "sim/study/answers/sweep_row.h"
#include "sim/study/answers/sweep_shard.h"
#include "sim/study/bench/kernel_table.h"
#include "sim/study/bench/launch_table.h"
#include "sim/study/bench/logged_choices.h"
#include "sim/study/bench/measured_tables.h"
#include "sim/study/capacity/plan_request.h"
#include "sim/study/harness/harness_run.h"
#include "sim/study/harness/harness_scenario.h"
#include "sim/study/logs/collective_log.h"
#include "sim/study/validation/stated_case.h"
#include "sim/study/validation/validation.h"
#include "tests/fuzz/entry.h"
#include "tests/fuzz/scratch.h"
#include "validate/harness/communication/message.h"

namespace lockstep::fuzz {
namespace {

using Json = nlohmann::ordered_json;

const ProfileStore& shipped() {
  static const ProfileStore store(LOCKSTEP_SOURCE_DIR);
  return store;
}

Json parsed(const std::string& bytes, const std::string& what) {
  return JsonDocument::from_text(bytes, what).value();
}

LoadedScenario loaded(const Json& scenario) {
  return load_value(scenario, {.store = shipped(), .file_name = "scenario", .folder = scratch_folder()});
}

void read_scenario(const std::string& bytes) {
  loaded(parsed(bytes, "scenario"));
}

// One layer on machines that are spelled out, so that any part of them may be put in.
const Json& small_scenario() {
  static const Json scenario = [] {
    Json json{
        {"cluster", {{"nodes", 2}}},
        {"model",
         {{"batch_per_gpu", 2},
          {"layers",
           {{{"name", "a"}, {"parameters", {1000}}, {"forward_time", "1 ms"}, {"backward_time", "2 ms"}}}}}}};
    json["cluster"]["machine"] = *shipped().open(ProfileKind::machine, "dgx_a100_40gb")->value;
    return json;
  }();
  return scenario;
}

// A profile where a scenario states it.
std::function<void(const std::string&)> within(const char* pointer) {
  return [pointer](const std::string& bytes) {
    Json scenario = small_scenario();
    Json& place = scenario[Json::json_pointer(pointer)];
    place = parsed(bytes, "profile");
    if (place.is_object() && place.contains("library") && std::string_view(pointer).ends_with("calibration"))
      scenario["cluster"]["machine"]["library"] = place["library"];
    loaded(scenario);
  };
}

// A profile in its own file.
template <class Read>
void read_alone(const Json& json, Read read) {
  JsonDocument document = JsonDocument::from_value(json, "profile");
  LoadContext context{.store = shipped(), .folder = scratch_folder()};
  read(document.root(), Place{context, ""});
  context.add_problems(document.problems());
  if (!context.problems.empty())
    throw ConfigError(context.problems);
}

template <auto read>
void read_profile(const std::string& bytes) {
  read_alone(parsed(bytes, "profile"), read);
}

void read_model_alone(const Json& json) {
  read_alone(json, [](const JsonReader& reader, const Place& place) { read_model(reader, place, false); });
}

void read_errors(const std::string& bytes) {
  scratch_file("data/hw_profiles/errors/steps.json", bytes);
  scratch_file("data/hw_profiles/errors/steps_left_out.json", bytes);
  const ProfileStore store(std::vector<std::string>{scratch_folder() + "/data"});
  std::vector<std::string> problems;
  try {
    find_left_out_models(store);
    return;
  } catch (const ConfigError& error) {
    problems = error.problems;
  }
  find_error_model(store);
}

void read_harness(const std::string& bytes) {
  const HarnessRun run = read_harness_run(scratch_file("run.json", bytes));
  const RunMachine machine = machine_of_links(
      run, {.bandwidth = Bandwidth{1'000'000'000}, .latency = Duration::nanoseconds(1000)}, nullptr);
  loaded(communication_scenario(run, machine));
}

void read_measurement_file(const std::string& bytes) {
  JsonDocument document = JsonDocument::from_text(bytes, scratch_folder() + "/measurements.json");
  read_measurements(document);
  document.throw_if_problems();
}

void read_index(const std::string& bytes) {
  scratch_file("t.csv", "size_bytes,time_us,algbw_gbs,busbw_gbs\n1048576,30,35,61\n");
  read_measured_tables(scratch_file("index.json", bytes));
}

void read_log(const std::string& bytes) {
  const CollectiveLog log = read_collective_log(scratch_file("log.txt", bytes));
  describe_skipped_lines(log);
  find_broken_run(log);
  if (log.op && log.ranks)
    table_of_log(log, "dgx1_v100");
}

// Alone, since it says neither its collective nor its ranks.
void read_table(const std::string& bytes) {
  const CollectiveLog log = read_collective_log(scratch_file("table.csv", bytes));
  describe_skipped_lines(log);
  find_broken_run(log);
}

void read_kernels(const std::string& bytes) {
  const std::string file = scratch_file("kernels.csv", bytes);
  if (kernel_table_kind(file).empty())
    throw ConfigError("no table of kernels");
  read_kernel_table(file);
}

void read_launches(const std::string& bytes) {
  read_launch_table(scratch_file("launches.csv", bytes));
}

void read_request(const std::string& bytes) {
  read_plan_request(scratch_file("request.json", bytes));
}

// Every file that it names is as it was.
void read_journal(const std::string& bytes) {
  const SweepJournal journal({.path = scratch_file("sweep.csv.partial", bytes),
                              .fingerprint = "seed",
                              .earlier = EarlierCells::resume,
                              .fingerprint_of = [](const std::string&) { return std::string("same"); }});
  for (const JournalLine& line : journal.finished()) journal.read(line.place);
}

void read_shard_note(const std::string& bytes) {
  const std::string table = scratch_file("shard.csv", "cluster.nodes,error\n1,\n2,\n");
  scratch_file("shard.csv.shard", bytes);
  merge_shards({table}, scratch_folder() + "/merged.csv");
}

void read_stated(const std::string& bytes) {
  read_stated_scenario({.path = scratch_file("result.json", bytes), .data_directory = LOCKSTEP_SOURCE_DIR});
}

std::vector<std::string> lines_of(const std::string& bytes) {
  std::vector<std::string> lines;
  std::istringstream stream(bytes);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

// A line an option: PATH=VALUE.
void read_changes(const std::string& bytes) {
  Overrides overrides;
  for (const std::string& line : lines_of(bytes))
    if (const std::size_t equals = line.find('='); equals != std::string::npos)
      overrides.emplace_back(line.substr(0, equals), line.substr(equals + 1));
  load_value(small_scenario(), {.store = shipped(), .folder = scratch_folder(), .overrides = overrides});
}

void read_axes(const std::string& bytes) {
  const SweepGrid grid = SweepGrid::parse(lines_of(bytes));
  for (const std::size_t cell : {std::size_t{0}, grid.cells() / 2, grid.cells() - 1})
    LOCKSTEP_CHECK(grid.values_at(cell).size() == grid.axes().size(), "each axis has a value in each cell");
}

void read_questions(const std::string& bytes) {
  for (const std::string& line : lines_of(bytes)) {
    if (line.starts_with("shard "))
      parse_shard(line.substr(6));
    else if (line.starts_with("goal "))
      find_goal(line.substr(5), false);
    else
      parse_condition(line).holds(1);
  }
}

template <class T>
bool is_quantity(Parsed<T> (*parse)(std::string_view), const std::string& bytes) {
  return std::holds_alternative<T>(parse(bytes));
}

void read_quantity(const std::string& bytes) {
  const std::array is_one{is_quantity(parse_bytes, bytes),    is_quantity(parse_bandwidth, bytes),
                          is_quantity(parse_duration, bytes), is_quantity(parse_horizon, bytes),
                          is_quantity(parse_flops, bytes),    is_quantity(parse_flop_rate, bytes),
                          is_quantity(parse_power, bytes)};
  if (std::none_of(is_one.begin(), is_one.end(), [](bool yes) { return yes; }))
    throw ConfigError("no quantity");
}

// Some values are several as one.
void split(const std::string& value) {
  try {
    harness::split_values(value);
  } catch (const harness::ProtocolError&) {  // this is one
  }
}

// Of a connection: lengths and bodies, one after another. What is decoded is encoded to the same bytes.
void read_wire(const std::string& bytes) {
  std::string_view rest = bytes;
  try {
    while (!rest.empty()) {
      const std::uint32_t size = 
          harness::decode_length(rest.substr(0, harness::length_bytes), harness::most_message_bytes);
      rest.remove_prefix(harness::length_bytes);
      const std::string_view body = rest.substr(0, size);
      const harness::Message message = harness::decode(body);
      LOCKSTEP_CHECK(harness::encode(message).substr(harness::length_bytes) == body,
                     "a message has one spelling");
      rest.remove_prefix(body.size());
      split(message.value);
    }
  } catch (const harness::ProtocolError& error) {
    throw ConfigError(error.what());
  }
}

// What was made is read by those who will read it.
void read_made(const Imported& imported, ImportedThing thing) {
  if (thing == ImportedThing::model)
    read_model_alone(imported.document);
  else if (thing == ImportedThing::machine)
    read_alone(imported.document, read_machine);
  else if (thing == ImportedThing::scenario)
    loaded(imported.document);
  else if (thing == ImportedThing::log)
    compare_logged_choices(imported.document, {.machine = "dgx_a100_40gb"}, shipped());
}

Imported import_with(const NamedImporter& importer, const std::string& bytes, const Json& stated) {
  const StoreShelf shelf(shipped());
  std::istringstream file(bytes);
  const ImportRequest request{.file_name = "file", .file = file, .stated = stated, .profiles = &shelf};
  Imported imported = importer.second.import(request);
  require_complete(imported, request);
  add_source(imported, importer, request.file_name);
  return imported;
}

Json stated_by(const Overrides& answers) {
  JsonDocument stated = JsonDocument::from_value(Json::object(), "answers");
  for (const auto& [path, value] : answers) stated.set(path, value);
  return stated.value();
}

// The examples that its questions give are the answers to them; an answer may lead to another question.
Overrides answers_to(const NamedImporter& importer, const std::string& bytes) {
  constexpr int rounds = 3;
  const StoreShelf shelf(shipped());
  Overrides answers;
  for (int round = 0; round < rounds; ++round) {
    std::istringstream file(bytes);
    const Imported imported = importer.second.import(
        {.file_name = "file", .file = file, .stated = stated_by(answers), .profiles = &shelf});
    const std::size_t before = answers.size();
    for (const Question& question : imported.questions)
      if (std::none_of(answers.begin(), answers.end(),
                       [&](const auto& answer) { return answer.first == question.path; }))
        answers.emplace_back(question.path, question.example);
    if (answers.size() == before)
      break;
  }
  return answers;
}

bool is_used_up(const Imported& imported, const std::string& path) {
  const std::string outermost = path.substr(0, path.find('.'));
  return std::find(imported.answered.begin(), imported.answered.end(), outermost) != imported.answered.end();
}

// As the verb does: what is stated is laid over what was made.
Json with_answers(const Imported& imported, Overrides answers) {
  JsonDocument document = JsonDocument::from_value(imported.document, "file as imported");
  std::erase_if(answers, [&](const auto& answer) { return is_used_up(imported, answer.first); });
  for (const auto& [path, value] : answers) document.set(path, value);
  return document.value();
}

void import_bytes(const NamedImporter& importer, const std::string& bytes) {
  importer_of(bytes);
  const Overrides answers = answers_to(importer, bytes);
  Imported imported = import_with(importer, bytes, stated_by(answers));
  imported.document = with_answers(imported, answers);
  read_made(imported, imported.makes.value_or(importer.second.makes));
}

std::vector<Entry> readers() {
  return {
      {"calibration", Form::json, {"hw_profiles/calibration"}, within("/cluster/machine/calibration")},
      {"collective_log", Form::text, {"tests/fuzz/seeds/collective_log"}, read_log},
      {"collective_table", Form::text, {"validate/measurements/nccl/*.csv"}, read_table},
      {"collective_tables_index", Form::json, {"tests/fuzz/seeds/collective_tables_index"}, read_index},
      {"error_model", Form::json, {"hw_profiles/errors/steps.json"}, read_errors},
      {"fabric", Form::json, {"hw_profiles/fabrics"}, within("/cluster/fabric")},
      {"gpu", Form::json, {"hw_profiles/gpus"}, within("/cluster/machine/gpu")},
      {"harness_message", Form::text, {"tests/fuzz/seeds/harness_message"}, read_wire},
      {"harness_run", Form::json, {"validate/measurements/harness/mlp_2_ranks_1gbit.json"}, read_harness},
      {"kernel_constants", Form::json, {"hw_profiles/compute"}, read_profile<read_kernel_constants>},
      {"kernel_table", Form::text, {"tests/study/kernels/*.csv"}, read_kernels},
      {"launch_table", Form::text, {"tests/fuzz/seeds/launch_table"}, read_launches},
      {"link", Form::json, {"hw_profiles/links"}, within("/cluster/machine/gpu_links/link")},
      {"machine", Form::json, {"hw_profiles/machines"}, read_profile<read_machine>},
      {"measurements",
       Form::json,
       {"validate/measurements/*.json", "validate/layouts"},
       read_measurement_file},
      {"model",
       Form::json,
       {"models/*.json"},
       [](const std::string& bytes) { read_model_alone(parsed(bytes, "model")); }},
      {"options_set", Form::text, {"tests/fuzz/seeds/options_set"}, read_changes},
      {"options_vary", Form::text, {"tests/fuzz/seeds/options_vary"}, read_axes},
      {"options_where", Form::text, {"tests/fuzz/seeds/options_where"}, read_questions},
      {"part", Form::json, {"hw_profiles/parts"}, read_profile<read_part>},
      {"plan_request", Form::json, {"scenarios/plans/*.json"}, read_request},
      {"quantity", Form::text, {"tests/fuzz/seeds/quantity"}, read_quantity},
      {"result", Form::json, {"tests/fuzz/seeds/result"}, read_stated},
      {"scenario", Form::json, {"scenarios/*.json", "scenarios/large"}, read_scenario},
      {"sweep_journal", Form::text, {"tests/fuzz/seeds/sweep_journal"}, read_journal},
      {"sweep_shard", Form::json, {"tests/fuzz/seeds/sweep_shard"}, read_shard_note},
  };
}

// By letters, since other tools spell JSON in ways that ours is not. Answers that are examples need not fit each other,
// so what is made of them may be refused; that samples are taken is a law of importers (import_test.cpp).
std::vector<Entry> importers() {
  std::vector<Entry> list;
  for (const NamedImporter& importer : Registry<Importer>::all())
    list.push_back({"import_" + importer.first,
                    Form::text,
                    {"tests/load/import/samples/" + importer.first},
                    [&importer](const std::string& bytes) { import_bytes(importer, bytes); },
                    false});
  return list;
}

}  // namespace

const std::vector<Entry>& entries() {
  static const std::vector<Entry> all = [] {
    std::vector<Entry> list = readers();
    for (Entry& entry : importers()) list.push_back(std::move(entry));
    std::sort(list.begin(), list.end(),
              [](const Entry& one, const Entry& other) { return one.name < other.name; });
    return list;
  }();
  return all;
}

}  // namespace lockstep::fuzz
