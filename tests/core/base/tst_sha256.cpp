// SPDX-License-Identifier: GPL-3.0-or-later
#include <string>

#include <QTest>

#include "core/base/sha256.h"

namespace posiscope::core {

class TestSha256 : public QObject {
    Q_OBJECT

private Q_SLOTS:
    /// The examples of FIPS 180-4 ("SHA256.pdf" of NIST's example values).
    void published_examples()
    {
        QCOMPARE(sha256_of(""),
                 std::string("e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"));
        QCOMPARE(sha256_of("abc"),
                 std::string("ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"));
        QCOMPARE(sha256_of("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
                 std::string("248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"));
        QCOMPARE(sha256_of(std::string(1'000'000, 'a')),
                 std::string("cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0"));
    }

    void pieces_make_no_difference()
    {
        std::string text;
        for (int n = 0; n < 300; ++n) text += static_cast<char>(n * 7);
        const std::string whole = sha256_of(text);
        for (std::size_t cut = 0; cut <= text.size(); ++cut) {
            Sha256 sum;
            sum.add(std::string_view(text).substr(0, cut));
            sum.add(std::string_view(text).substr(cut));
            QCOMPARE(sum.finish(), whole);
        }
    }
};

} // namespace posiscope::core

QTEST_APPLESS_MAIN(posiscope::core::TestSha256)
#include "tst_sha256.moc"
