// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/checkpoint/tensor_reader.h"

#include <algorithm>
#include <array>
#include <bit>
#include <new>
#include <numeric>
#include <optional>
#include <string>
#include <utility>

#include "core/base/text.h"

namespace posiscope::core {
namespace {

constexpr std::size_t batch_bytes = 8'000'000;
constexpr std::uint64_t shortest_row_piece = 16; // elements; below that a sweep over the file is quicker

/// `count` elements of the file from element `first` of the tensor's storage on, for out[out_at ...].
struct Piece {
    std::uint64_t first = 0;
    std::uint64_t count = 0;
    std::size_t out_at = 0;
};

/// Reads stretches of one tensor's storage, whose elements are numbered through all of its runs.
class Storage {
public:
    Storage(const TensorInfo& info, ByteSources sources)
        : m_info(info), m_sources(sources), m_size(dtype_size(info.dtype)), m_block(dtype_block(info.dtype)),
          m_runs(info.runs)
    {
        if (m_runs.empty())
            m_runs.push_back({info.source, info.begin, (info.end - info.begin) / m_size * m_block});
        for (const TensorRun& run : m_runs) {
            m_starts.push_back(m_elements);
            m_elements += run.elements;
        }
    }

    [[nodiscard]] std::uint64_t elements() const { return m_elements; }
    [[nodiscard]] std::size_t bytes_of(std::uint64_t elements) const
    {
        return static_cast<std::size_t>(elements / m_block) * m_size;
    }

    /// Fills `out` with the stored bytes from element `first` on.
    void add(std::uint64_t first, std::span<std::byte> out)
    {
        auto run = static_cast<std::size_t>(std::upper_bound(m_starts.begin(), m_starts.end(), first) -
                                            m_starts.begin() - 1);
        while (!out.empty()) {
            const TensorRun& at = m_runs[run];
            const std::uint64_t within = first - m_starts[run];
            const std::size_t bytes = std::min(bytes_of(at.elements - within), out.size());
            if (bytes > 0) m_wanted.push_back({at.source, {at.begin + bytes_of(within), out.first(bytes)}});
            out = out.subspan(bytes);
            first = m_starts[run] + at.elements;
            ++run;
        }
    }

    /// Reads all that was added.
    Result<void> read()
    {
        std::vector<ByteRange> ranges;
        for (std::size_t n = 0; n < m_wanted.size();) {
            const std::size_t source = m_wanted[n].first;
            ranges.clear();
            for (; n < m_wanted.size() && m_wanted[n].first == source; ++n) {
                const ByteRange& next = m_wanted[n].second;
                // Neighbours in the file that are neighbours in memory are one read.
                if (!ranges.empty() && ranges.back().offset + ranges.back().out.size() == next.offset &&
                    ranges.back().out.data() + ranges.back().out.size() == next.out.data())
                    ranges.back().out = {ranges.back().out.data(),
                                         ranges.back().out.size() + next.out.size()};
                else
                    ranges.push_back(next);
            }
            if (auto done = m_sources[source]->read_ranges(ranges); !done) return done;
        }
        m_wanted.clear();
        return {};
    }

    void convert(std::span<std::byte> bytes, std::span<float> out) const
    {
        if (m_info.big_endian) swap_bytes(m_info.dtype, bytes);
        convert_to_float(m_info.dtype, bytes, out);
    }

    [[nodiscard]] bool is_plain_float() const
    {
        return m_info.dtype == DType::f32 && !m_info.big_endian && std::endian::native == std::endian::little;
    }

private:
    const TensorInfo& m_info;
    ByteSources m_sources;
    std::size_t m_size, m_block;
    std::vector<TensorRun> m_runs;
    std::vector<std::uint64_t> m_starts;
    std::uint64_t m_elements = 0;
    std::vector<std::pair<std::size_t, ByteRange>> m_wanted;
};

/// Axes without those of size 1, and neighbours joined where they lie like one.
std::vector<StorageAxis> joined_axes(const TensorInfo& info)
{
    std::vector<StorageAxis> joined;
    for (const StorageAxis& axis : storage_axes(info)) {
        if (axis.size == 1) continue;
        if (!joined.empty() && joined.back().stride == axis.size * axis.stride)
            joined.back() = {joined.back().size * axis.size, axis.stride};
        else
            joined.push_back(axis);
    }
    if (joined.empty()) joined.push_back({1, 1});
    return joined;
}

Result<void> read_pieces(Storage& storage, std::span<const Piece> pieces, std::span<float> out)
{
    if (storage.is_plain_float()) {
        for (const Piece& piece : pieces)
            storage.add(piece.first, std::as_writable_bytes(
                                         out.subspan(piece.out_at, static_cast<std::size_t>(piece.count))));
        return storage.read();
    }
    std::vector<std::byte> bytes;
    for (std::size_t n = 0; n < pieces.size();) {
        std::size_t end = n, total = 0;
        while (end < pieces.size() &&
               (end == n || total + storage.bytes_of(pieces[end].count) <= batch_bytes))
            total += storage.bytes_of(pieces[end++].count);
        bytes.resize(total);
        std::size_t at = 0;
        for (std::size_t k = n; k < end; ++k) {
            const std::size_t size = storage.bytes_of(pieces[k].count);
            storage.add(pieces[k].first, std::span(bytes).subspan(at, size));
            at += size;
        }
        if (auto done = storage.read(); !done) return done;
        at = 0;
        for (; n < end; ++n) {
            const std::size_t size = storage.bytes_of(pieces[n].count);
            storage.convert(std::span(bytes).subspan(at, size),
                            out.subspan(pieces[n].out_at, static_cast<std::size_t>(pieces[n].count)));
            at += size;
        }
    }
    return {};
}

/// Adds the pieces of `count` elements of the tensor from its own element `first` on.
void add_pieces(const std::vector<StorageAxis>& axes, std::uint64_t first, std::uint64_t count,
                std::size_t out_at, std::vector<Piece>& pieces)
{
    constexpr std::uint64_t largest_piece = batch_bytes / 4;
    const auto row = static_cast<std::uint64_t>(axes.back().size);
    while (count > 0) {
        std::uint64_t left = first / row,
                      place = first % row * static_cast<std::uint64_t>(axes.back().stride);
        const std::uint64_t together = std::min({row - first % row, count, largest_piece / 256 * 256});
        for (std::size_t n = axes.size() - 1; n-- > 0;) {
            const auto size = static_cast<std::uint64_t>(axes[n].size);
            place += left % size * static_cast<std::uint64_t>(axes[n].stride);
            left /= size;
        }
        pieces.push_back({place, together, out_at});
        first += together;
        count -= together;
        out_at += static_cast<std::size_t>(together);
    }
}

/// One axis of the walk over a tensor in the order of its bytes.
struct SweepAxis {
    std::uint64_t size, stride; ///< in the file
    std::uint64_t out_stride;   ///< in the tensor's own row-major order
};

/// Reads a tensor whose rows do not lie together (a transposed or Fortran-ordered one): walks through it in the order of
/// the file, with a window of a few megabytes, and puts each element where it belongs.
/// @param row_places  where each row of the matrix goes in `out`, -1: nowhere; empty: all, in their order
Result<void> sweep(const TensorInfo& info, Storage& storage, const std::vector<StorageAxis>& axes,
                   std::span<const std::int64_t> row_places, std::span<float> out)
{
    std::vector<SweepAxis> order;
    std::uint64_t out_stride = 1;
    for (std::size_t n = axes.size(); n-- > 0;) {
        order.push_back({static_cast<std::uint64_t>(axes[n].size), static_cast<std::uint64_t>(axes[n].stride),
                         out_stride});
        out_stride *= static_cast<std::uint64_t>(axes[n].size);
    }
    std::stable_sort(order.begin(), order.end(),
                     [](const auto& a, const auto& b) { return a.stride > b.stride; });
    const SweepAxis inner = order.back();
    order.pop_back();

    const std::size_t size = dtype_size(info.dtype);
    const std::uint64_t cols = info.shape.size() == 2 ? static_cast<std::uint64_t>(info.shape[1]) : 1;
    const std::uint64_t at_once =
        std::max<std::uint64_t>(1, batch_bytes / 2 / size / std::max<std::uint64_t>(1, inner.stride));
    std::vector<std::byte> window, gathered;
    std::uint64_t window_first = 0, window_count = 0;
    std::vector<float> values;
    std::vector<std::uint64_t> index(order.size(), 0);
    // With rows picked out, the stretch of the inner axis that holds them is enough.
    std::uint64_t inner_begin = 0, inner_end = inner.size;
    if (!row_places.empty() && inner.out_stride == cols && inner.size == row_places.size()) {
        while (inner_begin < inner_end && row_places[inner_begin] < 0) ++inner_begin;
        while (inner_end > inner_begin && row_places[inner_end - 1] < 0) --inner_end;
    }
    for (;;) {
        std::uint64_t place = 0, target = 0;
        for (std::size_t n = 0; n < order.size(); ++n) {
            place += index[n] * order[n].stride;
            target += index[n] * order[n].out_stride;
        }
        for (std::uint64_t k = inner_begin; k < inner_end;) {
            const std::uint64_t count = std::min(at_once, inner_end - k);
            const std::uint64_t first = place + k * inner.stride, reach = (count - 1) * inner.stride + 1;
            if (first < window_first || first + reach > window_first + window_count) {
                window_first = first;
                window_count =
                    std::max(reach, std::min<std::uint64_t>(batch_bytes / size, storage.elements() - first));
                if (inner_begin > 0 || inner_end < inner.size) window_count = reach;
                window.resize(storage.bytes_of(window_count));
                storage.add(first, window);
                if (auto done = storage.read(); !done) return done;
            }
            const std::byte* from = window.data() + storage.bytes_of(first - window_first);
            values.resize(static_cast<std::size_t>(count));
            gathered.resize(values.size() * size);
            for (std::size_t n = 0; n < values.size(); ++n)
                std::copy_n(from + n * inner.stride * size, size, gathered.data() + n * size);
            storage.convert(gathered, values);
            for (std::size_t n = 0; n < values.size(); ++n) {
                std::uint64_t to = target + (k + n) * inner.out_stride;
                if (!row_places.empty()) {
                    const std::int64_t row = row_places[static_cast<std::size_t>(to / cols)];
                    if (row < 0) continue;
                    to = static_cast<std::uint64_t>(row) * cols + to % cols;
                }
                out[static_cast<std::size_t>(to)] = values[n];
            }
            k += count;
        }
        std::size_t axis = order.size();
        while (axis-- > 0) {
            if (++index[axis] < order[axis].size) break;
            index[axis] = 0;
        }
        if (axis == SIZE_MAX) return {};
    }
}

std::optional<Error> fault_of(const TensorInfo& info, ByteSources sources, const Storage& storage,
                              const std::vector<StorageAxis>& axes)
{
    const std::size_t source = info.runs.empty() ? info.source : info.runs.front().source;
    const std::string where = "tensor " + in_quotes(info.name) +
                              (source < sources.size() ? " in " + in_quotes(sources[source]->name()) : "");
    if (!info.fault.empty())
        return Error{ErrorCode::corrupt_file, where + " " + info.fault, "reading a tensor"};
    const auto extent = storage_extent(axes);
    if (!extent || *extent > storage.elements())
        return Error{ErrorCode::corrupt_file,
                     where + " reaches beyond the " + std::to_string(storage.elements()) +
                         " elements that are stored",
                     "reading a tensor"};
    return std::nullopt;
}

/// A tensor kept in blocks whose rows are not whole blocks (a transposed one): decoded whole, then put in order.
Result<HostTensor> read_scattered_blocks(const TensorInfo& info, Storage& storage,
                                         const std::vector<StorageAxis>& axes)
{
    std::vector<float> decoded(static_cast<std::size_t>(storage.elements()));
    std::vector<Piece> pieces;
    add_pieces({{static_cast<std::int64_t>(storage.elements()), 1}}, 0, storage.elements(), 0, pieces);
    if (auto done = read_pieces(storage, pieces, decoded); !done) return done.error();
    HostTensor tensor(info.shape);
    std::vector<Piece> places;
    add_pieces(axes, 0, tensor.size(), 0, places);
    for (const Piece& place : places)
        for (std::size_t n = 0; n < place.count; ++n)
            tensor.values()[place.out_at + n] = decoded[static_cast<std::size_t>(place.first) +
                                                        n * static_cast<std::size_t>(axes.back().stride)];
    return tensor;
}

/// CRC-32C (Castagnoli), a byte at a time.
std::uint32_t crc32c(std::span<const std::byte> bytes)
{
    static const auto table = [] {
        std::array<std::uint32_t, 256> out{};
        for (std::uint32_t n = 0; n < out.size(); ++n) {
            std::uint32_t value = n;
            for (int bit = 0; bit < 8; ++bit) value = (value >> 1u) ^ ((value & 1u) != 0 ? 0x82f63b78u : 0u);
            out[n] = value;
        }
        return out;
    }();
    std::uint32_t sum = 0xFFFFFFFFu;
    for (const std::byte byte : bytes)
        sum = table[(sum ^ std::to_integer<std::uint32_t>(byte)) & 0xFFu] ^ (sum >> 8u);
    return ~sum;
}

/// Holds a tensor against its check sum, where it has one and is small: large ones are read in parts.
Result<void> check_sum(const TensorInfo& info, ByteSources sources)
{
    constexpr std::uint64_t most = 4'000'000;
    if (!info.crc32c || !info.runs.empty() || info.end - info.begin > most) return {};
    std::vector<std::byte> bytes(static_cast<std::size_t>(info.end - info.begin));
    if (auto done = sources[info.source]->read(info.begin, bytes); !done) return done;
    if (crc32c(bytes) == *info.crc32c) return {};
    return Error{ErrorCode::corrupt_file,
                 "tensor " + in_quotes(info.name) + " in " + in_quotes(sources[info.source]->name()) +
                     " does not match its check sum; the file is damaged",
                 "reading a tensor"};
}

Result<HostTensor> read_whole(const TensorInfo& info, ByteSources sources)
{
    Storage storage(info, sources);
    const auto axes = joined_axes(info);
    if (auto fault = fault_of(info, sources, storage, axes)) return *fault;
    if (auto right = check_sum(info, sources); !right) return right.error();
    HostTensor tensor(info.shape);
    if (tensor.empty()) return tensor;
    if (axes.back().stride == 1 &&
        (axes.size() == 1 || static_cast<std::uint64_t>(axes.back().size) >= shortest_row_piece)) {
        std::vector<Piece> pieces;
        add_pieces(axes, 0, tensor.size(), 0, pieces);
        if (auto done = read_pieces(storage, pieces, tensor.values()); !done) return done.error();
    } else if (auto done = sweep(info, storage, axes, {}, tensor.values()); !done) {
        return done.error();
    }
    return tensor;
}

Result<HostTensor> read_rows(const TensorInfo& info, ByteSources sources, std::span<const std::int64_t> rows)
{
    Storage storage(info, sources);
    const auto axes = joined_axes(info);
    if (auto fault = fault_of(info, sources, storage, axes)) return *fault;
    if (auto right = check_sum(info, sources); !right) return right.error();
    const auto cols = static_cast<std::uint64_t>(info.shape[1]);
    HostTensor out({static_cast<std::int64_t>(rows.size()), info.shape[1]});
    if (out.empty()) return out;
    const bool rows_lie_together =
        axes.back().stride == 1 && (axes.size() == 1 || static_cast<std::uint64_t>(axes.back().size) >=
                                                            std::min(cols, shortest_row_piece));
    if (rows_lie_together) {
        std::vector<Piece> pieces;
        for (std::size_t n = 0; n < rows.size(); ++n)
            add_pieces(axes, static_cast<std::uint64_t>(rows[n]) * cols, cols,
                       n * static_cast<std::size_t>(cols), pieces);
        if (auto done = read_pieces(storage, pieces, out.values()); !done) return done.error();
        return out;
    }
    if (dtype_block(info.dtype) > 1) {
        const auto whole = read_scattered_blocks(info, storage, axes);
        if (!whole) return whole.error();
        const auto width = static_cast<std::ptrdiff_t>(cols);
        for (std::size_t n = 0; n < rows.size(); ++n)
            std::copy_n(whole->values().begin() + rows[n] * width, width,
                        out.values().begin() + static_cast<std::ptrdiff_t>(n) * width);
        return out;
    }
    // Each different row once, then copies of it.
    std::vector<std::int64_t> places(static_cast<std::size_t>(info.shape[0]), -1);
    std::vector<std::pair<std::size_t, std::size_t>> copies;
    for (std::size_t n = 0; n < rows.size(); ++n) {
        std::int64_t& place = places[static_cast<std::size_t>(rows[n])];
        if (place < 0)
            place = static_cast<std::int64_t>(n);
        else
            copies.emplace_back(static_cast<std::size_t>(place), n);
    }
    if (auto done = sweep(info, storage, axes, places, out.values()); !done) return done.error();
    const auto width = static_cast<std::ptrdiff_t>(cols);
    for (const auto& [from, to] : copies)
        std::copy_n(out.values().begin() + static_cast<std::ptrdiff_t>(from) * width, width,
                    out.values().begin() + static_cast<std::ptrdiff_t>(to) * width);
    return out;
}

/// Runs a reader; memory that is not there becomes an error.
template <class Reader>
Result<HostTensor> within_memory(const TensorInfo& info, const Reader& reader)
{
    try {
        return reader();
    } catch (const std::bad_alloc&) {
        return Error{ErrorCode::out_of_memory,
                     "there is not enough memory for tensor " + in_quotes(info.name) + " of shape " +
                         shape_text(info.shape),
                     "reading a tensor"};
    }
}

} // namespace

Result<HostTensor> read_tensor(const TensorInfo& info, ByteSources sources)
{
    return within_memory(info, [&] { return read_whole(info, sources); });
}

Result<HostTensor> read_tensor_rows(const TensorInfo& info, ByteSources sources,
                                    std::span<const std::int64_t> rows)
{
    return within_memory(info, [&] { return read_rows(info, sources, rows); });
}

} // namespace posiscope::core
