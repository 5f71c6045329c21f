// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/checkpoint/pickle_reader.h"

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <unordered_map>
#include <utility>

#include "core/base/text.h"
#include "core/checkpoint/byte_stream.h"

namespace posiscope::core {
namespace {

constexpr std::size_t most_nodes = 1'500'000;
constexpr std::size_t most_text = 64'000'000; // bytes of all texts together
constexpr std::size_t longest_line = 4'096;
constexpr std::size_t longest_integer = 1'024;

/// Modules whose parts no checkpoint has a use for, and that harm when they are called by another reader. A pickle
/// that names one is refused as a whole, although nothing would be called here.
constexpr std::array<std::string_view, 44> refused_modules{"os",
                                                           "posix",
                                                           "nt",
                                                           "subprocess",
                                                           "sys",
                                                           "shutil",
                                                           "socket",
                                                           "runpy",
                                                           "importlib",
                                                           "imp",
                                                           "pty",
                                                           "pdb",
                                                           "bdb",
                                                           "code",
                                                           "codeop",
                                                           "commands",
                                                           "ctypes",
                                                           "cffi",
                                                           "pickle",
                                                           "cPickle",
                                                           "_pickle",
                                                           "marshal",
                                                           "pip",
                                                           "platform",
                                                           "timeit",
                                                           "asyncio",
                                                           "http",
                                                           "urllib",
                                                           "requests",
                                                           "webbrowser",
                                                           "tempfile",
                                                           "multiprocessing",
                                                           "signal",
                                                           "torch.hub",
                                                           "torch.utils.cpp_extension",
                                                           "torch.serialization",
                                                           "torch.package",
                                                           "torch.jit",
                                                           "numpy.f2py",
                                                           "cProfile",
                                                           "profile",
                                                           "trace",
                                                           "doctest",
                                                           "_posixsubprocess"};

/// What may be named of Python's built-in functions.
constexpr std::array<std::string_view, 16> harmless_builtins{
    "set", "frozenset", "list",    "dict",      "tuple",  "int",   "float", "bool",
    "str", "bytes",     "complex", "bytearray", "object", "slice", "range", "long"};

bool is_refused(std::string_view module, std::string_view name)
{
    if (module == "builtins" || module == "__builtin__")
        return std::find(harmless_builtins.begin(), harmless_builtins.end(), name) == harmless_builtins.end();
    if (module == "torch" && (name == "load" || name == "compile")) return true;
    return std::any_of(refused_modules.begin(), refused_modules.end(), [&](std::string_view refused) {
        return module.starts_with(refused) &&
               (module.size() == refused.size() || module[refused.size()] == '.');
    });
}

/// The pickle machine without its teeth: a stack, marks, a memo.
class Machine {
public:
    Machine(const ByteSource& source, std::uint64_t begin)
        : m_source(source), m_stream(source, begin), m_begin(begin)
    {
    }

    Result<Pickle> run()
    {
        for (bool first = true;; first = false) {
            const std::uint64_t at = m_stream.position();
            const auto opcode = m_stream.next();
            if (!opcode) {
                fail(first ? "is empty" : "ends without its end mark; it is cut short");
            } else if (*opcode == '.') {
                const PickleId root = pop();
                if (!m_fault) {
                    m_pickle.root = root;
                    m_pickle.end = m_stream.position();
                    return std::move(m_pickle);
                }
            } else {
                step(*opcode);
            }
            if (m_stream.fault()) return *m_stream.fault();
            if (m_fault)
                return Error{ErrorCode::corrupt_file,
                             in_quotes(m_source.name()) + ": the pickle " + *m_fault + " (at byte " +
                                 std::to_string(at - m_begin) + ")",
                             "reading a pickle"};
        }
    }

private:
    void fail(std::string what)
    {
        if (!m_fault) m_fault = std::move(what);
    }
    void fail_short() { fail("ends within a value; it is cut short"); }

    PickleId add(PickleKind kind)
    {
        if (m_pickle.nodes.size() >= most_nodes) {
            fail("holds more than " + std::to_string(most_nodes) + " values");
            return 0;
        }
        m_pickle.nodes.emplace_back();
        m_pickle.nodes.back().kind = kind;
        return static_cast<PickleId>(m_pickle.nodes.size() - 1);
    }
    PickleNode& node(PickleId id) { return m_pickle.nodes[id]; }
    void push(PickleId id)
    {
        if (m_stack.size() >= most_nodes)
            return fail("holds more than " + std::to_string(most_nodes) + " values");
        m_stack.push_back(id);
    }
    void push_new(PickleKind kind) { push(add(kind)); }

    PickleId pop()
    {
        if (m_stack.empty() || (!m_marks.empty() && m_marks.back() == m_stack.size())) {
            fail("takes a value from an empty stack");
            return 0;
        }
        const PickleId id = m_stack.back();
        m_stack.pop_back();
        return id;
    }
    /// The value on top, which stays; only where `ok()` still holds.
    PickleId top()
    {
        if (m_stack.empty()) {
            fail("takes a value from an empty stack");
            return 0;
        }
        return m_stack.back();
    }

    std::vector<PickleId> pop_to_mark()
    {
        if (m_marks.empty()) {
            fail("looks for a mark that is not there");
            return {};
        }
        const auto from = m_stack.begin() + static_cast<std::ptrdiff_t>(m_marks.back());
        std::vector<PickleId> items(from, m_stack.end());
        m_stack.erase(from, m_stack.end());
        m_marks.pop_back();
        return items;
    }

    void push_integer(std::int64_t value)
    {
        const PickleId id = add(PickleKind::integer);
        if (!m_fault) node(id).integer = value;
        push(id);
    }
    void push_real(double value)
    {
        const PickleId id = add(PickleKind::real);
        if (!m_fault) node(id).integer = std::bit_cast<std::int64_t>(value);
        push(id);
    }
    void push_boolean(bool value)
    {
        push_integer(value ? 1 : 0);
        if (!m_fault) node(m_stack.back()).kind = PickleKind::boolean;
    }
    void push_items(PickleKind kind, std::vector<PickleId> items)
    {
        const PickleId id = add(kind);
        if (!m_fault) node(id).items = std::move(items);
        push(id);
    }

    PickleId add_text(PickleKind kind, std::string_view text)
    {
        if (m_pickle.texts.size() + text.size() > most_text) {
            fail("holds more than " + std::to_string(most_text) + " bytes of text");
            return 0;
        }
        const PickleId id = add(kind);
        if (m_fault) return 0;
        node(id).text_begin = static_cast<std::uint32_t>(m_pickle.texts.size());
        node(id).text_size = static_cast<std::uint32_t>(text.size());
        m_pickle.texts += text;
        return id;
    }

    void push_text(std::optional<std::uint64_t> size)
    {
        if (!size) return fail_short();
        if (*size > m_stream.left())
            return fail("claims a text of " + std::to_string(*size) + " bytes, but the file has " +
                        std::to_string(m_stream.left()) + " more");
        if (*size > most_text) return fail("holds a text of " + std::to_string(*size) + " bytes");
        std::string text;
        if (!m_stream.append(*size, text)) return fail_short();
        push(add_text(PickleKind::text, text));
    }

    /// Bytes are never needed: they are passed over.
    void push_bytes(std::optional<std::uint64_t> size)
    {
        if (!size) return fail_short();
        if (!m_stream.skip(*size))
            return fail("claims " + std::to_string(*size) + " bytes, but the file has " +
                        std::to_string(m_stream.left()) + " more");
        push_new(PickleKind::bytes);
    }

    /// Python 2 wrote texts as byte strings; they may be names.
    void push_string(std::optional<std::uint64_t> size) { push_text(size); }

    void push_long(std::optional<std::uint64_t> size)
    {
        if (!size) return fail_short();
        if (*size > longest_integer)
            return fail("holds a whole number of " + std::to_string(*size) + " bytes");
        std::string bytes;
        if (!m_stream.append(*size, bytes)) return fail_short();
        if (bytes.size() > 8) {
            // PyTorch's magic number has ten bytes; nothing else of this size matters. It is told by its low bytes.
            bytes.resize(8);
        }
        std::uint64_t value =
            bytes.empty() || (static_cast<unsigned char>(bytes.back()) & 0x80u) == 0 ? 0 : ~std::uint64_t{0};
        for (std::size_t n = bytes.size(); n-- > 0;)
            value = (value << 8u) | static_cast<unsigned char>(bytes[n]);
        push_integer(static_cast<std::int64_t>(value));
    }

    template <class Number>
    void push_number_of_line(std::size_t longest, bool is_long)
    {
        auto line = m_stream.line(longest);
        if (!line) return fail("holds a number that is cut short or too long");
        std::string_view text = *line;
        if (is_long && text.ends_with('L')) text.remove_suffix(1);
        if constexpr (std::is_same_v<Number, std::int64_t>) {
            if (!is_long && (text == "00" || text == "01")) return push_boolean(text == "01");
        }
        Number value{};
        const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), value);
        if (fault != std::errc{} || end != text.data() + text.size())
            return fail("holds " + in_quotes(text, 40) + " where a number was expected");
        if constexpr (std::is_same_v<Number, double>)
            push_real(value);
        else
            push_integer(value);
    }

    void push_quoted_line()
    {
        auto line = m_stream.line(longest_line);
        if (!line || line->size() < 2 || (line->front() != '\'' && line->front() != '"') ||
            line->front() != line->back())
            return fail("holds a text without its quotes");
        push(add_text(PickleKind::text, std::string_view(*line).substr(1, line->size() - 2)));
    }

    void push_global(std::string_view module, std::string_view name)
    {
        const std::string full = std::string(module) + "." + std::string(name);
        if (is_refused(module, name))
            return fail(
                "asks for " + in_quotes(full, 120) +
                ", which no weights need; such files can harm other programs, and nothing of it was run");
        push(add_text(PickleKind::global, full));
    }

    void make_object(PickleId callee, PickleId arguments)
    {
        if (m_fault) return;
        if (node(callee).kind != PickleKind::global && node(callee).kind != PickleKind::object)
            return fail("calls a value that is no class or function");
        const std::string_view made_by = m_pickle.text(callee);
        // Ordered and plain dicts are told apart by nobody here.
        if (made_by == "collections.OrderedDict" || made_by == "collections.defaultdict" ||
            made_by == "builtins.dict" || made_by == "__builtin__.dict") {
            const PickleId dict = add(PickleKind::dict);
            if (m_fault) return;
            for (const PickleId pairs : node(arguments).items) {
                if (node(pairs).kind != PickleKind::list) continue;
                for (const PickleId pair : std::vector<PickleId>(node(pairs).items))
                    if (node(pair).items.size() == 2) {
                        node(dict).items.push_back(node(pair).items[0]);
                        node(dict).items.push_back(node(pair).items[1]);
                        if (!grows()) return;
                    }
            }
            return push(dict);
        }
        const PickleId object = add(PickleKind::object);
        if (m_fault) return;
        node(object).callee = callee;
        node(object).arguments = arguments;
        push(object);
    }

    /// Items are counted as values are: a list that is copied again and again must not grow without end.
    bool grows()
    {
        if (++m_items <= 4 * most_nodes) return true;
        fail("holds more than " + std::to_string(4 * most_nodes) + " values");
        return false;
    }

    void append(PickleId to, std::span<const PickleId> items, PickleKind kind)
    {
        if (m_fault) return;
        if (node(to).kind != kind && node(to).kind != PickleKind::object)
            return fail(kind == PickleKind::dict ? "sets items of a value that has none"
                                                 : "appends to a value that is no list");
        for (const PickleId item : items) {
            if (!grows()) return;
            node(to).items.push_back(item);
        }
    }

    void remember(std::optional<std::uint64_t> key)
    {
        if (!key) return fail_short();
        const PickleId id = top();
        if (m_fault) return;
        if (m_memo.size() >= most_nodes)
            return fail("keeps more than " + std::to_string(most_nodes) + " values");
        m_memo[*key] = id;
    }
    void recall(std::optional<std::uint64_t> key)
    {
        if (!key) return fail_short();
        const auto at = m_memo.find(*key);
        if (at == m_memo.end())
            return fail("recalls value " + std::to_string(*key) + ", which was never kept");
        push(at->second);
    }
    std::optional<std::uint64_t> number_of_line()
    {
        const auto line = m_stream.line(20);
        std::uint64_t value = 0;
        if (!line) return std::nullopt;
        const auto [end, fault] = std::from_chars(line->data(), line->data() + line->size(), value);
        return fault == std::errc{} && end == line->data() + line->size() ? std::optional(value)
                                                                          : std::nullopt;
    }

    void step(std::uint8_t opcode)
    {
        switch (opcode) {
        case 0x80: { // PROTO
            const auto protocol = m_stream.next();
            if (!protocol) return fail_short();
            if (*protocol > 5) fail("is of protocol " + std::to_string(*protocol) + "; 0 to 5 are known");
            return;
        }
        case 0x95: { // FRAME
            const auto size = m_stream.number(8);
            if (!size) return fail_short();
            if (*size > m_stream.left())
                fail("claims a frame of " + std::to_string(*size) + " bytes, but the file has " +
                     std::to_string(m_stream.left()) + " more");
            return;
        }
        case '(':
            if (m_marks.size() >= most_nodes)
                return fail("holds more than " + std::to_string(most_nodes) + " marks");
            m_marks.push_back(m_stack.size());
            return;
        case '0':
            // Taking away a mark is allowed as well.
            if (!m_marks.empty() && m_marks.back() == m_stack.size())
                m_marks.pop_back();
            else
                pop();
            return;
        case '1': pop_to_mark(); return;
        case '2': {
            const PickleId id = top();
            if (!m_fault) push(id);
            return;
        }
        case 'N': return push_new(PickleKind::none);
        case 0x88: return push_boolean(true);
        case 0x89: return push_boolean(false);
        case 'I': return push_number_of_line<std::int64_t>(24, false);
        case 'L': return push_number_of_line<std::int64_t>(longest_line, true);
        case 'F': return push_number_of_line<double>(64, false);
        case 'J': {
            const auto value = m_stream.number(4);
            if (!value) return fail_short();
            return push_integer(static_cast<std::int32_t>(static_cast<std::uint32_t>(*value)));
        }
        case 'K':
        case 'M': {
            const auto value = m_stream.number(opcode == 'K' ? 1 : 2);
            if (!value) return fail_short();
            return push_integer(static_cast<std::int64_t>(*value));
        }
        case 0x8a: return push_long(m_stream.number(1));
        case 0x8b: return push_long(m_stream.number(4));
        case 'G': {
            std::uint64_t bits = 0;
            for (int n = 0; n < 8; ++n) {
                const auto byte = m_stream.next();
                if (!byte) return fail_short();
                bits = (bits << 8u) | *byte; // the one big-endian number of the format
            }
            return push_real(std::bit_cast<double>(bits));
        }
        case 'S': return push_quoted_line();
        case 'V': {
            const auto line = m_stream.line(longest_line);
            if (!line) return fail("holds a text that is cut short or too long");
            return push(add_text(PickleKind::text, *line));
        }
        case 'T': return push_string(m_stream.number(4));
        case 'U': return push_string(m_stream.number(1));
        case 'X': return push_text(m_stream.number(4));
        case 0x8c: return push_text(m_stream.number(1));
        case 0x8d: return push_text(m_stream.number(8));
        case 'B': return push_bytes(m_stream.number(4));
        case 'C': return push_bytes(m_stream.number(1));
        case 0x8e:
        case 0x96: return push_bytes(m_stream.number(8));
        case ')': return push_new(PickleKind::tuple);
        case ']':
        case 0x8f: return push_new(PickleKind::list);
        case '}': return push_new(PickleKind::dict);
        case 't': return push_items(PickleKind::tuple, pop_to_mark());
        case 'l':
        case 0x91: return push_items(PickleKind::list, pop_to_mark());
        case 'd': {
            auto items = pop_to_mark();
            if (items.size() % 2 != 0) return fail("has a dict with a key that lacks its value");
            return push_items(PickleKind::dict, std::move(items));
        }
        case 0x85:
        case 0x86:
        case 0x87: {
            std::vector<PickleId> items(static_cast<std::size_t>(opcode - 0x84));
            for (std::size_t n = items.size(); n-- > 0;) items[n] = pop();
            if (!m_fault) push_items(PickleKind::tuple, std::move(items));
            return;
        }
        case 'a': {
            const PickleId item = pop(), list = top();
            return append(list, {&item, 1}, PickleKind::list);
        }
        case 'e':
        case 0x90: {
            const auto items = pop_to_mark();
            return append(top(), items, PickleKind::list);
        }
        case 's': {
            std::array<PickleId, 2> pair{};
            pair[1] = pop();
            pair[0] = pop();
            return append(top(), pair, PickleKind::dict);
        }
        case 'u': {
            const auto items = pop_to_mark();
            if (items.size() % 2 != 0) return fail("has a dict with a key that lacks its value");
            return append(top(), items, PickleKind::dict);
        }
        case 'p': return remember(number_of_line());
        case 'q': return remember(m_stream.number(1));
        case 'r': return remember(m_stream.number(4));
        case 0x94: return remember(m_memo.size());
        case 'g': return recall(number_of_line());
        case 'h': return recall(m_stream.number(1));
        case 'j': return recall(m_stream.number(4));
        case 'c':
        case 'i': {
            const auto module = m_stream.line(longest_line), name = m_stream.line(longest_line);
            if (!module || !name) return fail_short();
            push_global(*module, *name);
            if (opcode == 'c' || m_fault) return;
            const PickleId callee = pop();
            push_items(PickleKind::tuple, pop_to_mark());
            if (m_fault) return;
            return make_object(callee, pop());
        }
        case 0x93: {
            const PickleId name = pop(), module = pop();
            if (m_fault) return;
            if (node(name).kind != PickleKind::text || node(module).kind != PickleKind::text)
                return fail("names a class by something that is no text");
            return push_global(std::string(m_pickle.text(module)), std::string(m_pickle.text(name)));
        }
        case 'R':
        case 0x81: {
            const PickleId arguments = pop(), callee = pop();
            return make_object(callee, arguments);
        }
        case 0x92: {
            pop(); // keyword arguments
            const PickleId arguments = pop(), callee = pop();
            return make_object(callee, arguments);
        }
        case 'o': {
            auto items = pop_to_mark();
            if (m_fault) return;
            if (items.empty()) return fail("makes an object of no class");
            const PickleId callee = items.front();
            items.erase(items.begin());
            push_items(PickleKind::tuple, std::move(items));
            return make_object(callee, pop());
        }
        case 'b': {
            const PickleId state = pop(), object = top();
            // Attributes of an ordered dict (_metadata) are no weights.
            if (!m_fault && node(object).kind == PickleKind::object) node(object).state = state;
            return;
        }
        case 'Q': {
            const PickleId identity = pop(), id = add(PickleKind::persistent);
            if (!m_fault) node(id).arguments = identity;
            return push(id);
        }
        case 'P': {
            const auto line = m_stream.line(longest_line);
            if (!line) return fail_short();
            const PickleId identity = add_text(PickleKind::text, *line), id = add(PickleKind::persistent);
            if (!m_fault) node(id).arguments = identity;
            return push(id);
        }
        case 0x98: return; // READONLY_BUFFER
        default: {
            std::array<char, 8> code{};
            std::snprintf(code.data(), code.size(), "0x%02x", opcode);
            return fail(std::string("has the opcode ") + code.data() + ", which weights do not need");
        }
        }
    }

    const ByteSource& m_source;
    ByteStream m_stream;
    std::uint64_t m_begin;
    Pickle m_pickle;
    std::vector<PickleId> m_stack;
    std::vector<std::size_t> m_marks;
    std::unordered_map<std::uint64_t, PickleId> m_memo;
    std::size_t m_items = 0;
    std::optional<std::string> m_fault;
};

} // namespace

std::string_view Pickle::text(PickleId id) const
{
    if (id >= nodes.size()) return {};
    const PickleNode& found = nodes[id];
    if (found.kind != PickleKind::text && found.kind != PickleKind::global) return {};
    return std::string_view(texts).substr(found.text_begin, found.text_size);
}

std::optional<std::int64_t> Pickle::integer(PickleId id) const
{
    if (id >= nodes.size() ||
        (nodes[id].kind != PickleKind::integer && nodes[id].kind != PickleKind::boolean))
        return std::nullopt;
    return nodes[id].integer;
}

double Pickle::real(PickleId id) const
{
    return std::bit_cast<double>(nodes[id].integer);
}

std::string_view Pickle::made_by(PickleId id) const
{
    if (id >= nodes.size() || nodes[id].kind != PickleKind::object) return {};
    return text(nodes[id].callee);
}

const std::vector<PickleId>& Pickle::arguments(PickleId id) const
{
    static const std::vector<PickleId> none;
    if (id >= nodes.size() || nodes[id].arguments >= nodes.size()) return none;
    const PickleNode& tuple = nodes[nodes[id].arguments];
    return tuple.kind == PickleKind::tuple ? tuple.items : none;
}

PickleId Pickle::value(PickleId dict, std::string_view key) const
{
    if (dict >= nodes.size()) return no_pickle;
    const auto& items = nodes[dict].items;
    if (nodes[dict].kind != PickleKind::dict && nodes[dict].kind != PickleKind::object) return no_pickle;
    for (std::size_t n = 0; n + 1 < items.size(); n += 2)
        if (nodes[items[n]].kind == PickleKind::text && text(items[n]) == key) return items[n + 1];
    return no_pickle;
}

Result<Pickle> read_pickle(const ByteSource& source, std::uint64_t begin)
{
    return Machine(source, begin).run();
}

} // namespace posiscope::core
