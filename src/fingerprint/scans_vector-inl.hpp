// SPDX-License-Identifier: Apache-2.0
// The searches of kernels.hpp for one instruction set, and its table. Part of kernels_vector-inl.hpp, which guards it.
// No state: any thread.

HWY_BEFORE_NAMESPACE();
namespace plumb::fingerprint::HWY_NAMESPACE {
namespace {

template <class T>
HWY_INLINE T bits_at(const std::uint8_t* data, std::size_t i) {
    T bits;
    std::memcpy(&bits, data + i * sizeof(T), sizeof(T));
    return bits;
}
template <class D>
HWY_INLINE hn::Vec<D> load_at(D d, const std::uint8_t* data, std::size_t i) {
    return hn::BitCast(d, hn::LoadU(hn::Repartition<std::uint8_t, D>(), data + i * sizeof(hn::TFromD<D>)));
}

template <class T>
std::size_t find(const void* memory, std::size_t n, std::uint64_t mask, std::uint64_t one, std::uint64_t other) {
    const hn::ScalableTag<T> d;
    constexpr std::size_t lanes = HWY_LANES(T);
    const auto* data = static_cast<const std::uint8_t*>(memory);
    const auto masks = hn::Set(d, static_cast<T>(mask));
    const auto ones = hn::Set(d, static_cast<T>(one)), others = hn::Set(d, static_cast<T>(other));
    std::size_t i = 0;
    for (; i + lanes <= n; i += lanes) {
        const auto bits = hn::And(load_at(d, data, i), masks);
        const auto met = hn::Or(hn::Eq(bits, ones), hn::Eq(bits, others));
        if (!hn::AllFalse(d, met)) {
            return i + static_cast<std::size_t>(hn::FindFirstTrue(d, met));
        }
    }
    for (; i < n; ++i) {
        const T bits = bits_at<T>(data, i) & static_cast<T>(mask);
        if (bits == static_cast<T>(one) || bits == static_cast<T>(other)) {
            return i;
        }
    }
    return n;
}

/// step(vector) for n elements of T, the last vector overlapping; false where there are fewer than one vector.
template <class D, class Step>
HWY_INLINE bool sweep(D d, const std::uint8_t* data, std::size_t n, Step&& step) {
    constexpr std::size_t lanes = HWY_LANES(hn::TFromD<D>);
    if (n < lanes) {
        return false;
    }
    std::size_t i = 0;
    for (; i + 4 * lanes <= n; i += 4 * lanes) {
        step(load_at(d, data, i), 0);
        step(load_at(d, data, i + lanes), 1);
        step(load_at(d, data, i + 2 * lanes), 2);
        step(load_at(d, data, i + 3 * lanes), 3);
    }
    for (; i + lanes <= n; i += lanes) {
        step(load_at(d, data, i), 0);
    }
    step(load_at(d, data, n - lanes), 1);
    return true;
}

/// Largest bits without the sign: the order of floats is that of their bits.
template <class T>
T largest_bits(const void* memory, std::size_t n) {
    const hn::ScalableTag<T> d;
    const auto* data = static_cast<const std::uint8_t*>(memory);
    constexpr T magnitude = std::numeric_limits<T>::max();
    const auto mask = hn::Set(d, magnitude);
    hn::Vec<decltype(d)> max[4] = {hn::Zero(d), hn::Zero(d), hn::Zero(d), hn::Zero(d)};
    if (sweep(d, data, n, [&](auto v, int k) HWY_ATTR { max[k] = hn::Max(max[k], hn::And(v, mask)); })) {
        const auto all = hn::Max(hn::Max(max[0], max[1]), hn::Max(max[2], max[3]));
        alignas(64) T lanes[HWY_LANES(T)];
        hn::Store(all, d, lanes);
        T found = 0;
        for (const T lane : lanes) {
            found = HWY_MAX(found, lane);
        }
        return found;
    }
    T found = 0;
    for (std::size_t i = 0; i < n; ++i) {
        found = HWY_MAX(found, static_cast<T>(bits_at<T>(data, i) & magnitude));
    }
    return found;
}

template <class T>
double largest_integer(const void* memory, std::size_t n) {
    const hn::ScalableTag<T> d;
    const auto* data = static_cast<const std::uint8_t*>(memory);
    hn::Vec<decltype(d)> max[4] = {hn::Zero(d), hn::Zero(d), hn::Zero(d), hn::Zero(d)};
    hn::Vec<decltype(d)> min[4] = {hn::Zero(d), hn::Zero(d), hn::Zero(d), hn::Zero(d)};
    T top = 0, bottom = 0;
    const auto step = [&](auto v, int k) HWY_ATTR {
        max[k] = hn::Max(max[k], v);
        min[k] = hn::Min(min[k], v);
    };
    if (sweep(d, data, n, step)) {
        alignas(64) T highest[HWY_LANES(T)], lowest[HWY_LANES(T)];
        hn::Store(hn::Max(hn::Max(max[0], max[1]), hn::Max(max[2], max[3])), d, highest);
        hn::Store(hn::Min(hn::Min(min[0], min[1]), hn::Min(min[2], min[3])), d, lowest);
        for (std::size_t i = 0; i < HWY_LANES(T); ++i) {
            top = HWY_MAX(top, highest[i]);
            bottom = HWY_MIN(bottom, lowest[i]);
        }
    } else {
        for (std::size_t i = 0; i < n; ++i) {
            top = HWY_MAX(top, bits_at<T>(data, i));
            bottom = HWY_MIN(bottom, bits_at<T>(data, i));
        }
    }
    return HWY_MAX(static_cast<double>(top), -static_cast<double>(bottom));
}

/// Denormals too, where the thread flushes them.
double float_value(std::int32_t bits) {
    return bits < 0x00800000 ? static_cast<double>(bits) * 0x1p-149 : static_cast<double>(std::bit_cast<float>(bits));
}

double largest_f32(const void* data, std::size_t n) { return float_value(largest_bits<std::int32_t>(data, n)); }
double largest_f64(const void* data, std::size_t n) {
    return std::bit_cast<double>(largest_bits<std::int64_t>(data, n));
}
double largest_f16(const void* data, std::size_t n) {
    return half_value(static_cast<std::uint16_t>(largest_bits<std::int16_t>(data, n)));
}
double largest_bf16(const void* data, std::size_t n) {
    return float_value(std::int32_t{largest_bits<std::int16_t>(data, n)} << 16);
}

template <bool careful>
constexpr std::array<AddRows, dtype_count> rows_of_types = {
    add_rows<DType::f32, careful>,  add_rows<DType::f64, careful>, add_rows<DType::f16, careful>,
    add_rows<DType::bf16, careful>, add_rows<DType::i8, careful>,  add_rows<DType::i32, careful>};

} // namespace

extern const Kernels kernels;
constexpr Kernels kernels = {
    HWY_STR(HWY_NAMESPACE),
    rows_of_types<false>,
    rows_of_types<true>,
    close,
    {find<std::uint32_t>, find<std::uint64_t>, find<std::uint16_t>, find<std::uint16_t>, find<std::uint8_t>,
     find<std::uint32_t>},
    {largest_f32, largest_f64, largest_f16, largest_bf16, largest_integer<std::int8_t>, largest_integer<std::int32_t>}};

} // namespace plumb::fingerprint::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
