// SPDX-License-Identifier: GPL-3.0-or-later
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include <QTest>

#include "core/tensor/dtype.h"
#include "core/tensor/host_tensor.h"
#include "core/tensor/shape.h"
#include "tests/support/checkpoint_builder.h"

namespace posiscope::core {
namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();

/// One element converted.
template <class Stored>
float converted(DType dtype, Stored stored)
{
    float out = -77.0f;
    convert_to_float(dtype, std::as_bytes(std::span(&stored, 1)), std::span(&out, 1));
    return out;
}

bool same_bits(float a, float b)
{
    return std::bit_cast<std::uint32_t>(a) == std::bit_cast<std::uint32_t>(b);
}

/// Value of a small floating-point number from its definition: sign, exponent, mantissa.
double defined_value(unsigned bits, int exponent_bits, int mantissa_bits)
{
    const int bias = (1 << (exponent_bits - 1)) - 1;
    const double sign = (bits >> (exponent_bits + mantissa_bits)) != 0 ? -1.0 : 1.0;
    const int exponent = static_cast<int>(bits >> mantissa_bits) & ((1 << exponent_bits) - 1);
    const int mantissa = static_cast<int>(bits) & ((1 << mantissa_bits) - 1);
    if (exponent == 0) return sign * std::ldexp(mantissa, 1 - bias - mantissa_bits);
    return sign * std::ldexp((1 << mantissa_bits) + mantissa, exponent - bias - mantissa_bits);
}

} // namespace

class TestDType : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void names_and_sizes()
    {
        const std::vector<std::pair<const char*, std::size_t>> rows{
            {"F64", 8},     {"F32", 4}, {"F16", 2}, {"BF16", 2}, {"F8_E4M3", 1},
            {"F8_E5M2", 1}, {"I64", 8}, {"I32", 4}, {"I16", 2},  {"I8", 1},
            {"U64", 8},     {"U32", 4}, {"U16", 2}, {"U8", 1},   {"BOOL", 1}};
        for (std::size_t n = 0; n < rows.size(); ++n) {
            const auto dtype = dtype_from_name(rows[n].first);
            QVERIFY2(dtype, rows[n].first);
            QCOMPARE(dtype_name(*dtype), std::string_view(rows[n].first));
            QCOMPARE(dtype_size(*dtype), rows[n].second);
            QCOMPARE(is_floating(*dtype), n < 6);
        }
        for (const char* unknown : {"", "F99", "f32", "F8", "I128"}) QVERIFY(!dtype_from_name(unknown));
    }

    void half_by_hand_data()
    {
        QTest::addColumn<quint16>("stored");
        QTest::addColumn<float>("value");
        const auto row = [](const char* name, int stored, float value) {
            QTest::newRow(name) << static_cast<quint16>(stored) << value;
        };
        row("zero", 0x0000, 0.0f);
        row("minus zero", 0x8000, -0.0f);
        row("one", 0x3C00, 1.0f);
        row("minus two", 0xC000, -2.0f);
        row("largest", 0x7BFF, 65504.0f);
        row("smallest normal", 0x0400, 0x1p-14f);
        row("largest subnormal", 0x03FF, 0x3FFp-24f);
        row("smallest subnormal", 0x0001, 0x1p-24f);
        row("minus smallest subnormal", 0x8001, -0x1p-24f);
        row("a third", 0x3555, 0.333251953125f);
        row("infinity", 0x7C00, infinity);
        row("minus infinity", 0xFC00, -infinity);
    }
    void half_by_hand()
    {
        QFETCH(const quint16, stored);
        QFETCH(const float, value);
        QVERIFY(same_bits(converted(DType::f16, stored), value));
    }

    void every_half_is_its_definition()
    {
        for (unsigned bits = 0; bits < 0x10000; ++bits) {
            const float found = converted(DType::f16, static_cast<std::uint16_t>(bits));
            const unsigned exponent = (bits >> 10u) & 0x1Fu, mantissa = bits & 0x3FFu;
            if (exponent == 31 && mantissa != 0)
                QVERIFY(std::isnan(found));
            else if (exponent == 31)
                QVERIFY(std::isinf(found) && std::signbit(found) == (bits >> 15u != 0));
            else
                QVERIFY(same_bits(found, static_cast<float>(defined_value(bits, 5, 10))));
        }
    }

    void bfloat_is_the_upper_half_of_a_float()
    {
        QVERIFY(same_bits(converted(DType::bf16, std::uint16_t{0x3F80}), 1.0f));
        QVERIFY(same_bits(converted(DType::bf16, std::uint16_t{0xC2F7}), -123.5f));
        QVERIFY(same_bits(converted(DType::bf16, std::uint16_t{0x8000}), -0.0f));
        QVERIFY(same_bits(converted(DType::bf16, std::uint16_t{0x0001}), 0x1p-133f));
        QVERIFY(same_bits(converted(DType::bf16, std::uint16_t{0x0080}), 0x1p-126f));
        QVERIFY(same_bits(converted(DType::bf16, std::uint16_t{0x7F80}), infinity));
        QVERIFY(same_bits(converted(DType::bf16, std::uint16_t{0xFF80}), -infinity));
        QVERIFY(std::isnan(converted(DType::bf16, std::uint16_t{0x7FC0})));
        QVERIFY(std::isnan(converted(DType::bf16, std::uint16_t{0xFF81})));
    }

    void e4m3_has_no_infinity_and_one_nan()
    {
        const auto value = [](int stored) {
            return converted(DType::f8_e4m3, static_cast<std::uint8_t>(stored));
        };
        QVERIFY(same_bits(value(0x00), 0.0f));
        QVERIFY(same_bits(value(0x80), -0.0f));
        QVERIFY(same_bits(value(0x01), 0x1p-9f));
        QVERIFY(same_bits(value(0x07), 0x7p-9f));
        QVERIFY(same_bits(value(0x08), 0x1p-6f));
        QVERIFY(same_bits(value(0x38), 1.0f));
        QVERIFY(same_bits(value(0xB9), -1.125f));
        QVERIFY(same_bits(value(0x78), 256.0f));
        QVERIFY(same_bits(value(0x7E), 448.0f));
        QVERIFY(same_bits(value(0xFE), -448.0f));
        QVERIFY(std::isnan(value(0x7F)));
        QVERIFY(std::isnan(value(0xFF)));
        for (int bits = 0; bits < 256; ++bits)
            if ((bits & 0x7F) != 0x7F)
                QVERIFY(same_bits(value(bits),
                                  static_cast<float>(defined_value(static_cast<unsigned>(bits), 4, 3))));
    }

    void e5m2_is_a_short_half()
    {
        const auto value = [](int stored) {
            return converted(DType::f8_e5m2, static_cast<std::uint8_t>(stored));
        };
        QVERIFY(same_bits(value(0x01), 0x1p-16f));
        QVERIFY(same_bits(value(0x03), 0x3p-16f));
        QVERIFY(same_bits(value(0x04), 0x1p-14f));
        QVERIFY(same_bits(value(0x3C), 1.0f));
        QVERIFY(same_bits(value(0xBD), -1.25f));
        QVERIFY(same_bits(value(0x7B), 57344.0f));
        QVERIFY(same_bits(value(0x7C), infinity));
        QVERIFY(same_bits(value(0xFC), -infinity));
        for (const int nan : {0x7D, 0x7E, 0x7F, 0xFD}) QVERIFY(std::isnan(value(nan)));
        for (int bits = 0; bits < 256; ++bits)
            if ((bits & 0x7C) != 0x7C)
                QVERIFY(same_bits(value(bits),
                                  static_cast<float>(defined_value(static_cast<unsigned>(bits), 5, 2))));
    }

    void floats_are_kept_and_doubles_rounded()
    {
        const float signalling = std::bit_cast<float>(0x7F800001u);
        for (const float value : {0.0f, -0.0f, 1.5f, 0x1p-149f, -infinity, signalling})
            QVERIFY(same_bits(converted(DType::f32, value), value));
        QVERIFY(same_bits(converted(DType::f64, 1.0 / 3.0), 1.0f / 3.0f));
        // Ties go to even: 1 + 2^-24 lies halfway.
        QVERIFY(same_bits(converted(DType::f64, 1.0 + 0x1p-24), 1.0f));
        QVERIFY(same_bits(converted(DType::f64, 1.0 + 0x3p-24), 1.0f + 0x1p-22f));
        QVERIFY(same_bits(converted(DType::f64, 0x1p-1074), 0.0f));
        QVERIFY(same_bits(converted(DType::f64, 1e300), infinity));
        QVERIFY(std::isnan(converted(DType::f64, std::numeric_limits<double>::quiet_NaN())));
    }

    void integers()
    {
        QCOMPARE(converted(DType::i64, std::int64_t{-1}), -1.0f);
        QCOMPARE(converted(DType::i64, (std::int64_t{1} << 24) + 1), 16777216.0f);
        QCOMPARE(converted(DType::i32, std::numeric_limits<std::int32_t>::min()), -2147483648.0f);
        QCOMPARE(converted(DType::i16, std::int16_t{-32768}), -32768.0f);
        QCOMPARE(converted(DType::i8, std::int8_t{-128}), -128.0f);
        QCOMPARE(converted(DType::u64, ~std::uint64_t{0}), 0x1p64f);
        QCOMPARE(converted(DType::u32, ~std::uint32_t{0}), 4294967296.0f);
        QCOMPARE(converted(DType::u16, std::uint16_t{65535}), 65535.0f);
        QCOMPARE(converted(DType::u8, std::uint8_t{255}), 255.0f);
        QCOMPARE(converted(DType::boolean, std::uint8_t{1}), 1.0f);
    }

    void elements_stand_in_order_at_any_address()
    {
        // One byte in, so that nothing is aligned.
        const std::string bytes = "x" + tests::encoded(DType::f16, 1.0f) +
                                  tests::encoded(DType::f16, -0.25f) + tests::encoded(DType::f16, 100.0f);
        std::vector<float> out(3);
        convert_to_float(DType::f16, std::as_bytes(std::span(bytes)).subspan(1), out);
        QCOMPARE(out, (std::vector<float>{1.0f, -0.25f, 100.0f}));
    }

    void the_tests_own_encoder_is_the_inverse()
    {
        for (const DType dtype :
             {DType::f64, DType::f32, DType::f16, DType::bf16, DType::f8_e4m3, DType::f8_e5m2})
            for (const float value : {0.0f, -0.0f, 0.25f, -1.75f, 1.5f, 40.0f, 0x1p-9f}) {
                const std::string bytes = tests::encoded(dtype, value);
                QCOMPARE(bytes.size(), dtype_size(dtype));
                float found = 0.0f;
                convert_to_float(dtype, std::as_bytes(std::span(bytes)), std::span(&found, 1));
                QVERIFY(same_bits(found, value));
            }
    }

    void element_counts_do_not_wrap()
    {
        constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();
        using Count = std::optional<std::uint64_t>;
        QCOMPARE(element_count(Shape{}), Count(1));
        QCOMPARE(element_count(Shape{3, 4, 5}), Count(60));
        QCOMPARE(element_count(Shape{3, 0, 5}), Count(0));
        QCOMPARE(element_count(Shape{most, 2}), Count(static_cast<std::uint64_t>(most) * 2));
        QCOMPARE(element_count(Shape{most, 3}), Count());
        QCOMPARE(element_count(Shape{std::int64_t{1} << 32, std::int64_t{1} << 32}), Count());
        QCOMPARE(element_count(Shape{std::int64_t{1} << 40, std::int64_t{1} << 40, 0}), Count());
        QCOMPARE(element_count(Shape{4, -1}), Count());
        QCOMPARE(shape_text(Shape{512, 384}), std::string("[512, 384]"));
        QCOMPARE(shape_text(Shape{}), std::string("[]"));
        QCOMPARE(shape_text(Shape(5000, 1)), std::string("[1, 1, 1, 1, 1, 1, 1, 1, ...]"));
    }

    void host_tensors_are_row_major()
    {
        std::vector<float> values(24);
        for (std::size_t n = 0; n < values.size(); ++n) values[n] = static_cast<float>(n);
        const HostTensor tensor({2, 3, 4}, values);
        QCOMPARE(tensor.size(), std::size_t{24});
        QCOMPARE(tensor.dim(1), std::int64_t{3});
        const MatrixView second = tensor.matrix(1);
        QCOMPARE(second.rows, std::size_t{3});
        QCOMPARE(second.cols, std::size_t{4});
        QCOMPARE(second(2, 1), 21.0f);
        QCOMPARE(HostTensor({2, 2}).matrix()(1, 1), 0.0f);
        QVERIFY(HostTensor().empty());
        QVERIFY(HostTensor({0, 4}).matrix().empty());
    }
};

} // namespace posiscope::core

QTEST_APPLESS_MAIN(posiscope::core::TestDType)
#include "tst_dtype.moc"
