// A file mapped read-only.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>

namespace tenon {

class MappedFile {
 public:
  // Maps the whole file privately and read-only. Raises IoError naming the path and the reason.
  // An empty file gives an empty span.
  static std::shared_ptr<const MappedFile> open(const std::string& path);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  std::span<const std::byte> bytes() const { return {data_, size_}; }
  const std::string& path() const { return path_; }
  // Tells the file, as it was when it was opened, from others and from later contents: device,
  // inode, size and time of the last change.
  const std::string& identity() const { return identity_; }

 private:
  MappedFile() = default;
  std::string path_;
  std::string identity_;
  const std::byte* data_ = nullptr;
  size_t size_ = 0;
};

// Lets the system take back the memory behind `part` of a MappedFile's bytes, `file`: it is read
// from the file again when it is next used. So is what stands within 2 MB, which one access may
// have brought in together.
void release_pages(std::span<const std::byte> file, std::span<const std::byte> part);

// Writes a file so that `path` holds either its old content or all of the new one: temporary file
// in the same folder, fsync, rename, fsync of the folder. Keeps the mode of an existing regular
// file, else 0666 less the umask; follows a symbolic link at `path`; removes the temporary on
// failure. Raises IoError naming `path`.
void write_file_atomic(const std::string& path, std::span<const std::byte> bytes);
// The same for the pieces one after another.
void write_pieces_atomic(const std::string& path,
                         std::span<const std::span<const std::byte>> pieces);

}  // namespace tenon
