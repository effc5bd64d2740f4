// Shards are joined into the table of the whole, or refused by name.

#include "sim/study/answers/sweep_shard.h"

#include <doctest/doctest.h>

#include <filesystem>

#include "sim/base/error.h"
#include "sim/base/fingerprint.h"
#include "tests/support/program.h"

namespace lockstep::sweep_shard_test {

using testing::Folder;
using testing::text_of;

const std::string header = "x,error\n";

// The table of a shard, with its note beside it.
std::string write_shard(const Folder& folder, const std::string& name, const std::string& rows,
                        ShardNote note) {
  const std::string table = folder.write(name, header + rows);
  note.table = fingerprint_of(header + rows);
  write_shard_note(table, note);
  return table;
}

ShardNote note_of(std::size_t index, std::size_t count, std::size_t cells) {
  return {.shard = {index, count}, .cells = cells, .sweep = "s", .program = "p", .files = {{"a.json", "1"}}};
}

std::string message_of(const std::vector<std::string>& tables, const std::string& output) {
  try {
    merge_shards(tables, output);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "";
}

TEST_CASE("Records are taken back in turns, in whatever order the shards are named") {
  const Folder folder;
  const std::string first = write_shard(folder, "1.csv", "1,\n3,\n", note_of(1, 2, 4));
  const std::string second = write_shard(folder, "2.csv", "\"two\nlines\",\n4,wrong\n", note_of(2, 2, 4));
  const std::string output = folder.path() + "/all.csv";
  const MergedSweep merged = merge_shards({second, first}, output);
  CHECK(text_of(output) == header + "1,\n\"two\nlines\",\n3,\n4,wrong\n");
  CHECK(merged.rows == 4);
  CHECK(merged.errors == 1);
}

TEST_CASE("A shard that holds no cell still counts") {
  const Folder folder;
  const std::string first = write_shard(folder, "1.csv", "1,\n", note_of(1, 2, 1));
  const std::string second = write_shard(folder, "2.csv", "", note_of(2, 2, 1));
  const std::string output = folder.path() + "/all.csv";
  merge_shards({first, second}, output);
  CHECK(text_of(output) == header + "1,\n");
  CHECK(message_of({first}, output) == "--merge: 1 of 2 shards missing: 2/2");
}

TEST_CASE("What does not belong to the first, or is there twice, is refused by name and leaves no output") {
  const Folder folder;
  const std::string first = write_shard(folder, "1.csv", "1,\n", note_of(1, 2, 2));
  ShardNote note = note_of(2, 2, 2);
  note.sweep = "other";
  const std::string other_sweep = write_shard(folder, "2.csv", "2,\n", note);
  const std::string other_count = write_shard(folder, "3.csv", "2,\n", note_of(2, 3, 2));
  note = note_of(2, 2, 2);
  note.program = "other";
  const std::string other_program = write_shard(folder, "4.csv", "2,\n", note);
  note = note_of(2, 2, 2);
  note.files = {{"a.json", "2"}};
  const std::string other_file = write_shard(folder, "5.csv", "2,\n", note);
  const std::string output = folder.path() + "/all.csv";
  const auto says = [&](const std::string& table, const std::string& part) {
    const std::string message = message_of({first, table}, output);
    CAPTURE(message);
    CHECK(message.find(table) != std::string::npos);
    CHECK(message.find(part) != std::string::npos);
  };
  says(other_sweep, "of another sweep");
  says(other_count, "shard 2/3 where the first is 1/2");
  says(other_program, "another build of the program");
  says(other_file, "made when a.json was another");
  says(first, "are both shard 1/2");
  CHECK_FALSE(std::filesystem::exists(output));
}

TEST_CASE("A table that was changed or cut, or whose note is gone or no note, is refused") {
  const Folder folder;
  const std::string first = write_shard(folder, "1.csv", "1,\n3,\n", note_of(1, 2, 4));
  const std::string second = write_shard(folder, "2.csv", "2,\n4,\n", note_of(2, 2, 4));
  const std::string output = folder.path() + "/all.csv";
  for (const char* rows : {"2,\n", "2,\n5,\n", "2,\n4,\n6,\n", "2,\n4,", ""}) {
    folder.write("2.csv", header + rows);
    CHECK(message_of({first, second}, output) ==
          "--merge: " + second + ": is not as sweep wrote it: changed or cut since");
  }
  for (const char* note :
       {"", "{}", "[1]", R"({"schema": 1})", R"({"schema": "lockstep.sweep_shard/1", "shard": -1})",
        R"({"schema": "lockstep.sweep_shard/1", "shard": 1e300, "of": 1.5, "cells": "4"})"}) {
    folder.write("2.csv.shard", note);
    CHECK(message_of({first, second}, output).find("2.csv.shard is not what sweep --shard writes") !=
          std::string::npos);
  }
  std::filesystem::remove(shard_note_of(second));
  CHECK(message_of({first, second}, output).find("2.csv: is no shard") != std::string::npos);
  CHECK_FALSE(std::filesystem::exists(output));
}

TEST_CASE("A note of more cells than a table can have is refused at the first row that is missing") {
  const Folder folder;
  const std::string table =
      write_shard(folder, "1.csv", "1,\n2,\n", note_of(1, 1, 1'000'000'000'000'000'000));
  CHECK(message_of({table}, folder.path() + "/all.csv") ==
        "--merge: " + table + ": is not as sweep wrote it: changed or cut since");
}

}  // namespace lockstep::sweep_shard_test
