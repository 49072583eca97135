// A channel over MPI's non-blocking collectives and messages.
#include <algorithm>
#include <cstring>

#include <capibara/error.h>

#include "core/processes/channel.h"

namespace capibara::processes {

namespace {

constexpr std::size_t one_gather_bytes = 32 << 10;  // below it one round of an all-gather is faster than two of halves

class MessageChannel final : public Channel {
 public:
  MessageChannel(const mpi::Table& mpi, mpi::Group* group, int size, int position, const Progress& progress)
      : Channel(size, position), mpi_(mpi), group_(group), progress_(progress) {}

  void begin(uint64_t signature) override {
    if (signature == 0) return;
    std::vector<uint64_t> all(static_cast<std::size_t>(size_));
    all_gather(reinterpret_cast<const std::byte*>(&signature), reinterpret_cast<std::byte*>(all.data()),
               sizeof signature);
    const auto other = std::find_if(all.begin(), all.end(), [&](uint64_t theirs) { return theirs != signature; });
    if (other != all.end()) throw Mismatch{static_cast<int>(other - all.begin())};
  }
  void all_gather(const std::byte* from, std::byte* to, std::size_t bytes) override {
    finish([&](mpi::Request** request) { return mpi_.all_gather(group_, from, to, bytes, request); });
  }
  void all_to_all(const std::byte* from, std::byte* to, std::size_t bytes) override {
    finish([&](mpi::Request** request) { return mpi_.all_to_all(group_, from, to, bytes, request); });
  }
  void broadcast(std::byte* data, std::size_t bytes, int root) override {
    finish([&](mpi::Request** request) { return mpi_.broadcast(group_, data, bytes, root, request); });
  }
  void barrier() override {
    finish([&](mpi::Request** request) { return mpi_.barrier(group_, request); });
  }
  void permute(const std::byte* from, std::byte* to, std::size_t bytes, int source, int target) override {
    mpi::Request *sending = nullptr, *receiving = nullptr;
    if (source >= 0)
      check_mpi(mpi_.receive(group_, to, bytes, source, &receiving));
    else
      std::memset(to, 0, bytes);
    if (target >= 0) check_mpi(mpi_.send(group_, from, bytes, target, &sending));
    wait(receiving);
    wait(sending);
  }
  void reduce(const Reduce& what, DType wire, const std::byte* from, std::byte* to) override {
    const std::size_t bytes = bytes_of(wire, what.count);
    if (bytes <= one_gather_bytes || what.count < size_) {
      std::vector<std::byte> all(bytes * static_cast<std::size_t>(size_));
      all_gather(from, all.data(), bytes);
      combine(what, wire, all.data(), what.count, to);
      return;
    }
    // Each process reduces one part; the last may be padded.
    const int64_t part = (what.count + size_ - 1) / size_;
    std::vector<std::byte> parts(bytes_of(wire, part) * static_cast<std::size_t>(size_)),
        result(bytes_of(what.dtype, part) * static_cast<std::size_t>(size_));
    std::memcpy(parts.data(), from, bytes);
    reduce_parts(what, wire, parts.data(), part,
                 result.data() + bytes_of(what.dtype, part) * static_cast<std::size_t>(position_));
    std::vector<std::byte> own(
        result.begin() + static_cast<std::ptrdiff_t>(bytes_of(what.dtype, part) * static_cast<std::size_t>(position_)),
        result.begin() +
            static_cast<std::ptrdiff_t>(bytes_of(what.dtype, part) * static_cast<std::size_t>(position_ + 1)));
    all_gather(own.data(), result.data(), own.size());
    std::memcpy(to, result.data(), bytes_of(what.dtype, what.count));
  }
  void reduce_scatter(const Reduce& what, DType wire, const std::byte* from, std::byte* to) override {
    reduce_parts(what, wire, from, what.count / size_, to);
  }

 private:
  static std::size_t bytes_of(DType dtype, int64_t count) {
    return static_cast<std::size_t>(storage_size(dtype) * count);
  }

  void reduce_parts(const Reduce& what, DType wire, const std::byte* from, int64_t part, std::byte* to) {
    std::vector<std::byte> received(bytes_of(wire, part) * static_cast<std::size_t>(size_));
    all_to_all(from, received.data(), bytes_of(wire, part));
    combine(what, wire, received.data(), part, to);
  }
  void combine(const Reduce& what, DType wire, const std::byte* all, int64_t count, std::byte* to) const {
    std::vector<const std::byte*> blocks;
    for (int i = 0; i < size_; ++i) blocks.push_back(all + bytes_of(wire, count) * static_cast<std::size_t>(i));
    combine_blocks(what.kind, wire, blocks, count, what.dtype, to);
  }
  template <class Start>
  void finish(const Start& start) {
    mpi::Request* request = nullptr;
    check_mpi(start(&request));
    wait(request);
  }
  void wait(mpi::Request* request) {
    bool done = request == nullptr;
    progress_.until([&] {
      if (!done) check_mpi(mpi_.test(&request, &done));
      return done;
    });
  }

  const mpi::Table& mpi_;
  mpi::Group* const group_;
  const Progress& progress_;
};

}  // namespace

std::unique_ptr<Channel> make_message_channel(const mpi::Table& mpi, mpi::Group* group, int size, int position,
                                              const Progress& progress) {
  return std::make_unique<MessageChannel>(mpi, group, size, position, progress);
}

}  // namespace capibara::processes
