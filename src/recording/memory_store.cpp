// SPDX-License-Identifier: Apache-2.0
#include "recording/store.hpp"

namespace plumb::recording {
namespace {

class MemoryStore final : public Store {
  public:
    Status append(const Bytes& bytes) override {
        append_bytes(content_, bytes.data(), bytes.size());
        return {};
    }
    Status replace(const Bytes& head, const std::vector<ByteRange>& kept) override {
        Bytes next = head;
        for (const ByteRange& range : kept) {
            append_bytes(next, content_.data() + range.offset, range.size);
        }
        content_ = std::move(next);
        return {};
    }
    [[nodiscard]] std::uint64_t size() const override { return content_.size(); }
    [[nodiscard]] Bytes bytes() const override { return content_; }
    void forget() noexcept override {}

  private:
    Bytes content_;
};

} // namespace

std::unique_ptr<Store> make_memory_store() { return std::make_unique<MemoryStore>(); }

} // namespace plumb::recording
