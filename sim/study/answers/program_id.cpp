#include "sim/study/answers/program_id.h"

#include <link.h>

#include <cstddef>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string_view>

namespace lockstep {
namespace {

std::size_t padded(std::size_t size) {
  return (size + 3) / 4 * 4;
}

// The build id among the notes of an ELF file; empty: none.
std::string build_id_among(std::string_view notes) {
  ElfW(Nhdr) note{};
  while (notes.size() >= sizeof note) {
    std::memcpy(&note, notes.data(), sizeof note);
    const std::size_t value = sizeof note + padded(note.n_namesz);
    const std::size_t end = value + padded(note.n_descsz);
    if (end > notes.size())
      return "";
    if (note.n_type == NT_GNU_BUILD_ID)
      return std::string(notes.substr(value, note.n_descsz));
    notes.remove_prefix(end);
  }
  return "";
}

std::string build_id_in(const dl_phdr_info& file) {
  for (int index = 0; index < file.dlpi_phnum; ++index) {
    const auto& part = file.dlpi_phdr[index];
    if (part.p_type != PT_NOTE)
      continue;
    const auto* const begin = reinterpret_cast<const char*>(file.dlpi_addr + part.p_vaddr);
    if (std::string id = build_id_among({begin, part.p_memsz}); !id.empty())
      return id;
  }
  return "";
}

}  // namespace

std::string program_id() {
  std::string id;
  // The first file that is visited is the program itself.
  const auto visit = [](dl_phdr_info* file, std::size_t, void* found) {
    *static_cast<std::string*>(found) = build_id_in(*file);
    return 1;
  };
  dl_iterate_phdr(visit, &id);
  if (!id.empty())
    return id;
  std::ifstream program("/proc/self/exe", std::ios::binary);
  return {std::istreambuf_iterator<char>(program), std::istreambuf_iterator<char>()};
}

}  // namespace lockstep
