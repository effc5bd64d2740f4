#include "sim/base/atomic_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <climits>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>

#include "sim/base/check.h"
#include "sim/base/error.h"

namespace lockstep {
namespace {

// A signal handler reaches nothing but globals, so the live temporaries are in one, of fixed size because a
// handler may not wait for an allocator. This is the only mutable state in Lockstep beside the registries.
struct TemporarySlot {
  enum State : int { unused, being_written, live };
  std::atomic<int> state = unused;
  std::array<char, PATH_MAX> path{};
};
static_assert(std::atomic<int>::is_always_lock_free);
std::array<TemporarySlot, 32> temporaries;

constexpr std::size_t buffered_bytes = std::size_t{1} << 16;
constexpr int most_name_attempts = 1'000;
constexpr const char* open_descriptors = "/proc/self/fd";

std::size_t take_slot() {
  for (std::size_t slot = 0; slot < temporaries.size(); ++slot) {
    int expected = TemporarySlot::unused;
    if (temporaries[slot].state.compare_exchange_strong(expected, TemporarySlot::being_written))
      return slot;
  }
  LOCKSTEP_CHECK(false, "at most 32 outputs are open at once");
}

void publish(std::size_t slot, const std::string& path) {
  temporaries[slot].state = TemporarySlot::being_written;
  std::memcpy(temporaries[slot].path.data(), path.c_str(), path.size() + 1);
  temporaries[slot].state = TemporarySlot::live;
}

void release(std::size_t slot) {
  temporaries[slot].state = TemporarySlot::unused;
}

std::string describe(int error_number) {
  return std::generic_category().message(error_number);
}

// Follows symbolic links where the target exists, so that replacing it does not replace the link.
std::string resolved(const std::string& path) {
  std::error_code error;
  const auto target = std::filesystem::canonical(path, error);
  return error ? path : target.string();
}

std::string temporary_name(const std::string& target, int attempt) {
  const std::filesystem::path path(target);
  const std::string name = fmt::format(".lockstep-{}-{}.tmp", ::getpid(), attempt);
  return (path.parent_path() / name).string();
}

bool is_the_users_mistake(int error_number) {
  switch (error_number) {
    case EACCES:
    case EEXIST:
    case EISDIR:
    case ELOOP:
    case ENAMETOOLONG:
    case ENOENT:
    case ENOTDIR:
    case ENXIO:
    case EPERM:
    case EROFS:
      return true;
    default:
      return false;
  }
}

}  // namespace

AtomicFile::AtomicFile(std::string path) : path_(std::move(path)), target_(resolved(path_)) {
  struct stat status {};
  const bool exists = ::stat(target_.c_str(), &status) == 0;
  if (!exists && errno != ENOENT)
    fail_to_open(errno);
  if (!exists && std::filesystem::is_symlink(std::filesystem::symlink_status(target_)))
    fail_to_open(ENOENT);  // a link that leads nowhere: what it is meant for is not known
  if (path_.empty() || path_.ends_with('/') || (exists && S_ISDIR(status.st_mode)))
    fail_to_open(path_.empty() ? ENOENT : EISDIR);
  if (exists && ::access(target_.c_str(), W_OK) != 0)
    fail_to_open(errno);  // the rename would succeed, against the will of whoever made it read-only
  if (exists && !S_ISREG(status.st_mode)) {
    open_in_place();
    return;
  }
  if (!open_nameless())
    open_temporary();
  if (exists) {
    // Best effort: some file systems keep no modes.
    static_cast<void>(::fchmod(descriptor_, status.st_mode & 07777U));
  }
}

AtomicFile::~AtomicFile() {
  abandon();
}

void AtomicFile::open_in_place() {
  descriptor_ = ::open(target_.c_str(), O_WRONLY | O_CLOEXEC);
  if (descriptor_ < 0)
    fail_to_open(errno);
}

// Named later by way of its descriptor's own link.
bool AtomicFile::open_nameless() {
  const std::string folder = std::filesystem::path(target_).parent_path().string();
  if (::access(open_descriptors, X_OK) == 0)
    descriptor_ = ::open(folder.empty() ? "." : folder.c_str(), O_WRONLY | O_TMPFILE | O_CLOEXEC, 0666);
  is_nameless_ = descriptor_ >= 0;
  return is_nameless_;
}

void AtomicFile::give_name() {
  const std::string itself = fmt::format("{}/{}", open_descriptors, descriptor_);
  slot_ = take_slot();
  for (int attempt = 0; attempt < most_name_attempts; ++attempt) {
    const std::string name = temporary_name(target_, attempt);
    if (name.size() < PATH_MAX &&
        ::linkat(AT_FDCWD, itself.c_str(), AT_FDCWD, name.c_str(), AT_SYMLINK_FOLLOW) == 0) {
      temporary_ = name;
      publish(slot_, temporary_);
      is_nameless_ = false;
      return;
    }
    if (name.size() >= PATH_MAX || errno != EEXIST)
      break;
  }
  const int error_number = errno;
  release(slot_);
  fail_to_write(error_number);
}

void AtomicFile::open_temporary() {
  slot_ = take_slot();
  for (int attempt = 0; attempt < most_name_attempts; ++attempt) {
    temporary_ = temporary_name(target_, attempt);
    if (temporary_.size() >= PATH_MAX) {
      errno = ENAMETOOLONG;
      break;
    }
    // O_EXCL first, then publish: a file that somebody else made must not be unlinked by our handler.
    descriptor_ = ::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (descriptor_ >= 0) {
      publish(slot_, temporary_);
      return;
    }
    if (errno != EEXIST)
      break;
  }
  const int error_number = errno;
  release(slot_);
  temporary_.clear();
  fail_to_open(error_number);
}

void AtomicFile::write(std::string_view text) {
  LOCKSTEP_CHECK(descriptor_ >= 0, "nothing is written after commit");
  buffer_ += text;
  if (buffer_.size() >= buffered_bytes)
    flush();
}

void AtomicFile::flush() {
  std::string_view rest = buffer_;
  while (!rest.empty()) {
    const ssize_t written = ::write(descriptor_, rest.data(), rest.size());
    if (written < 0 && errno != EINTR)
      fail_to_write(errno);
    rest.remove_prefix(written < 0 ? 0 : static_cast<std::size_t>(written));
  }
  buffer_.clear();
}

void AtomicFile::commit() {
  LOCKSTEP_CHECK(descriptor_ >= 0, "a file is committed once");
  flush();
  // Network file systems report a full disk only here. Pipes and devices cannot be synchronised, and say
  // EINVAL.
  if (::fsync(descriptor_) != 0 && errno != EINVAL && errno != EROFS && errno != ENOTSUP)
    fail_to_write(errno);
  if (is_nameless_)
    give_name();
  if (::close(std::exchange(descriptor_, -1)) != 0)
    fail_to_write(errno);
  if (temporary_.empty())
    return;
  if (::rename(temporary_.c_str(), target_.c_str()) != 0)
    fail_to_write(errno);
  release(slot_);
  temporary_.clear();
}

void AtomicFile::abandon() noexcept {
  if (descriptor_ >= 0)
    ::close(std::exchange(descriptor_, -1));
  if (!temporary_.empty()) {
    ::unlink(temporary_.c_str());
    release(slot_);
  }
}

void AtomicFile::fail_to_open(int error_number) const {
  const std::string message =
      fmt::format("{}: cannot be written ({}), expected a file in an existing, writable folder", path_,
                  describe(error_number));
  if (is_the_users_mistake(error_number))
    throw ConfigError(message);
  throw EnvironmentError(message);
}

void AtomicFile::fail_to_write(int error_number) const {
  throw EnvironmentError(fmt::format("{}: writing failed: {}", path_, describe(error_number)));
}

void write_file_atomically(const std::string& path, std::string_view text) {
  AtomicFile file(path);
  file.write(text);
  file.commit();
}

void remove_temporary_files() noexcept {
  for (const TemporarySlot& slot : temporaries)
    if (slot.state == TemporarySlot::live)
      ::unlink(slot.path.data());
}

}  // namespace lockstep
