// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/checkpoint/torch_objects.h"

#include <algorithm>
#include <array>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "core/base/checked_math.h"
#include "core/base/text.h"
#include "core/checkpoint/array_dtypes.h"

namespace posiscope::core {
namespace {

constexpr std::size_t most_dimensions = 32;

struct TypeName {
    std::string_view name;
    DType dtype;
};

/// Storage classes of old files; like the dtypes of new ones they live in the module "torch".
constexpr std::array storage_names{
    TypeName{"DoubleStorage", DType::f64}, TypeName{"FloatStorage", DType::f32},
    TypeName{"HalfStorage", DType::f16},   TypeName{"BFloat16Storage", DType::bf16},
    TypeName{"LongStorage", DType::i64},   TypeName{"IntStorage", DType::i32},
    TypeName{"ShortStorage", DType::i16},  TypeName{"CharStorage", DType::i8},
    TypeName{"ByteStorage", DType::u8},    TypeName{"BoolStorage", DType::boolean},
};

std::optional<DType> type_of(std::string_view global)
{
    const std::size_t dot = global.rfind('.');
    if (dot == std::string_view::npos || !global.starts_with("torch")) return std::nullopt;
    for (const TypeName& row : storage_names)
        if (row.name == global.substr(dot + 1)) return row.dtype;
    return dtype_of_array_name(global.substr(dot + 1));
}

bool is_untyped(std::string_view global)
{
    return global == "torch.storage.UntypedStorage" || global == "torch.UntypedStorage" ||
           global == "torch.storage._UntypedStorage";
}

bool is_container(PickleKind kind)
{
    return kind == PickleKind::dict || kind == PickleKind::object || kind == PickleKind::list ||
           kind == PickleKind::tuple;
}

/// The call that made a tensor, behind any wrapping ("_rebuild_parameter", "_rebuild_from_type_v2"); no_pickle where the
/// value is no tensor.
PickleId tensor_call(const Pickle& pickle, PickleId id)
{
    for (int depth = 0; depth < 8; ++depth) {
        const std::string_view made_by = pickle.made_by(id);
        const auto& arguments = pickle.arguments(id);
        if (made_by == "torch._utils._rebuild_tensor" || made_by == "torch._utils._rebuild_tensor_v2" ||
            made_by == "torch._utils._rebuild_tensor_v3")
            return id;
        if ((made_by == "torch._utils._rebuild_parameter" ||
             made_by == "torch._utils._rebuild_parameter_with_state" ||
             made_by == "torch.nn.parameter.Parameter" || made_by == "torch.nn.parameter.Buffer") &&
            !arguments.empty()) {
            id = arguments[0];
        } else if (made_by == "torch._tensor._rebuild_from_type_v2" && arguments.size() >= 3) {
            // (function, type, its arguments, state): the same as a call of the function.
            const std::string_view function = pickle.text(arguments[0]);
            if (function.starts_with("torch._utils._rebuild_tensor")) return id;
            return no_pickle;
        } else {
            return no_pickle;
        }
    }
    return no_pickle;
}

class TensorBuilder {
public:
    TensorBuilder(const Pickle& pickle, std::string file_name, const StorageFinder& find_storage)
        : m_pickle(pickle), m_file_name(std::move(file_name)), m_find_storage(find_storage)
    {
    }

    Result<TensorInfo> build(const std::string& name, PickleId call) const
    {
        const std::string tensor = in_quotes(m_file_name) + ": tensor " + in_quotes(name);
        const auto fault = [&](const std::string& what) {
            return Error{ErrorCode::corrupt_file, tensor + " " + what, "pickled tensor"};
        };
        std::string_view function = m_pickle.made_by(call);
        const std::vector<PickleId>* arguments = &m_pickle.arguments(call);
        if (function == "torch._tensor._rebuild_from_type_v2") {
            function = m_pickle.text((*arguments)[0]);
            arguments = &m_pickle[(*arguments)[2]].items;
        }
        if (arguments->size() < 4)
            return fault("is made of " + std::to_string(arguments->size()) +
                         " arguments; at least 4 were expected");
        const auto storage = read_torch_storage(m_pickle, (*arguments)[0], tensor);
        if (!storage) return storage.error();

        const auto& identity = m_pickle.arguments((*arguments)[0]);
        const std::string_view storage_type = m_pickle.text(identity[1]);
        std::optional<DType> dtype = type_of(storage_type);
        if (function.ends_with("_v3") && arguments->size() >= 7)
            dtype = type_of(m_pickle.text((*arguments)[6]));
        if (!dtype)
            return fault("has the storage type " + in_quotes(storage_type.empty() ? "?" : storage_type, 60) +
                         ", which is not known");

        const auto offset = m_pickle.integer((*arguments)[1]);
        const auto sizes = whole_numbers((*arguments)[2]), strides = whole_numbers((*arguments)[3]);
        if (!offset || *offset < 0) return fault("begins at a negative offset of its storage");
        if (!sizes || !strides)
            return fault("has sizes or strides that are negative, too many, or no whole numbers");
        if (sizes->size() != strides->size())
            return fault("has " + std::to_string(sizes->size()) + " sizes but " +
                         std::to_string(strides->size()) + " strides");

        TensorInfo info;
        info.name = name;
        info.dtype = *dtype;
        info.shape.assign(sizes->begin(), sizes->end());
        std::vector<StorageAxis> axes;
        for (std::size_t n = 0; n < sizes->size(); ++n) axes.push_back({(*sizes)[n], (*strides)[n]});
        const auto count = element_count(info.shape);
        const auto extent = storage_extent(axes);
        const auto reach = extent ? checked_add(*extent, static_cast<std::uint64_t>(*offset)) : std::nullopt;
        const std::string shown = "of shape " + shape_text(info.shape);
        if (!count || !reach) return fault(shown + " is too large for any file");

        const auto stored = m_find_storage(*storage);
        if (!stored)
            return Error{stored.error().code, tensor + ": " + stored.error().message, stored.error().context};
        const std::size_t element_size = dtype_size(*dtype);
        const std::uint64_t present = stored->size / element_size;
        const std::uint64_t claimed = storage->elements * storage->element_size / element_size;
        if (*extent > 0 && *reach > std::min(claimed, present))
            return fault(shown + " needs " + std::to_string(*reach) + " elements of its storage, which has " +
                         std::to_string(std::min(claimed, present)));
        // A stride of 0 repeats elements; a small file must not ask for a large array.
        if (*count > 1'000'000 && *count / 64 > present)
            return fault(shown + " repeats the " + std::to_string(present) +
                         " elements of its storage too often");
        info.source = stored->source;
        info.begin = stored->begin + static_cast<std::uint64_t>(*offset) * element_size;
        info.end = info.begin + *extent * element_size;
        info.big_endian = stored->big_endian;
        TensorInfo plain = info;
        if (*count > 0 && storage_axes(plain) != axes) info.axes = std::move(axes);
        if (*count == 0) info.begin = info.end = stored->begin;
        return info;
    }

private:
    [[nodiscard]] std::optional<std::vector<std::int64_t>> whole_numbers(PickleId id) const
    {
        // torch.Size is a call with one tuple.
        if (m_pickle.made_by(id) == "torch.Size" && m_pickle.arguments(id).size() == 1)
            id = m_pickle.arguments(id)[0];
        const PickleNode& node = m_pickle[id];
        if ((node.kind != PickleKind::tuple && node.kind != PickleKind::list) ||
            node.items.size() > most_dimensions)
            return std::nullopt;
        std::vector<std::int64_t> numbers;
        for (const PickleId item : node.items) {
            const auto number = m_pickle.integer(item);
            if (!number || *number < 0) return std::nullopt;
            numbers.push_back(*number);
        }
        return numbers;
    }

    const Pickle& m_pickle;
    std::string m_file_name;
    const StorageFinder& m_find_storage;
};

/// Attributes of an object: its state, where that is a dict (or the first of a pair of dicts).
PickleId attributes(const Pickle& pickle, PickleId id)
{
    if (id >= pickle.nodes.size() || pickle[id].kind != PickleKind::object) return no_pickle;
    PickleId state = pickle[id].state;
    if (state != no_pickle && pickle[state].kind == PickleKind::tuple && !pickle[state].items.empty())
        state = pickle[state].items[0];
    return state != no_pickle && pickle[state].kind == PickleKind::dict ? state : no_pickle;
}

std::string key_text(const Pickle& pickle, PickleId key)
{
    if (pickle[key].kind == PickleKind::text) return std::string(pickle.text(key));
    if (const auto number = pickle.integer(key)) return std::to_string(*number);
    return {};
}

/// States of optimisers and schedulers hold tensors that are no weights.
bool is_training_state(std::string_view key)
{
    for (const std::string_view word :
         {"optimizer", "optim", "scheduler", "amp", "scaler", "rng_state", "ema_optimizer", "callbacks"})
        if (key == word || (key.starts_with(word) && key.size() > word.size() &&
                            (key[word.size()] == '_' || key[word.size()] == 's')))
            return true;
    return false;
}

/// A walk over values that visits each container once, so that shared and circular ones end.
class Walk {
public:
    explicit Walk(const Pickle& pickle) : m_pickle(pickle) {}

    /// Whether a tensor is found anywhere inside.
    [[nodiscard]] bool holds_tensors(PickleId root) const
    {
        std::set<PickleId> seen;
        std::vector<PickleId> open{root};
        while (!open.empty()) {
            const PickleId id = open.back();
            open.pop_back();
            if (id >= m_pickle.nodes.size() || !is_container(m_pickle[id].kind)) continue;
            if (tensor_call(m_pickle, id) != no_pickle) return true;
            if (!seen.insert(id).second) continue;
            const PickleNode& node = m_pickle[id];
            open.insert(open.end(), node.items.begin(), node.items.end());
            if (node.kind == PickleKind::object) open.push_back(node.state);
        }
        return false;
    }

    /// Tensors with their names, joined with dots, in the order of the file.
    [[nodiscard]] std::vector<std::pair<std::string, PickleId>> tensors(PickleId root) const
    {
        struct Open {
            PickleId id;
            std::string name;
        };
        std::vector<std::pair<std::string, PickleId>> found;
        std::set<PickleId> seen;
        std::vector<Open> open{{root, {}}};
        while (!open.empty()) {
            const Open at = std::move(open.back());
            open.pop_back();
            if (at.id >= m_pickle.nodes.size() || !is_container(m_pickle[at.id].kind)) continue;
            if (const PickleId call = tensor_call(m_pickle, at.id); call != no_pickle) {
                found.emplace_back(at.name.empty() ? "tensor" : at.name, call);
                continue;
            }
            // Names grow with depth: real ones are short.
            if (!seen.insert(at.id).second || at.name.size() > 2'000) continue;
            std::vector<Open> children;
            const auto add = [&](PickleId child, const std::string& key, bool own_level) {
                children.push_back({child, own_level || key.empty() ? at.name
                                           : at.name.empty()        ? key
                                                                    : at.name + "." + key});
            };
            const PickleNode& node = m_pickle[at.id];
            if (node.kind == PickleKind::list || node.kind == PickleKind::tuple) {
                for (std::size_t n = 0; n < node.items.size(); ++n)
                    add(node.items[n], std::to_string(n), false);
            } else {
                for (std::size_t n = 0; n + 1 < node.items.size(); n += 2) {
                    const std::string key = key_text(m_pickle, node.items[n]);
                    if (!(at.name.empty() && is_training_state(key))) add(node.items[n + 1], key, false);
                }
                // A module keeps its parts in three dicts, whose own names are no part of a tensor's name.
                if (const PickleId state = attributes(m_pickle, at.id); state != no_pickle) {
                    const auto& items = m_pickle[state].items;
                    for (std::size_t n = 0; n + 1 < items.size(); n += 2) {
                        const std::string key = key_text(m_pickle, items[n]);
                        add(items[n + 1], key,
                            key == "_parameters" || key == "_buffers" || key == "_modules");
                    }
                }
            }
            open.insert(open.end(), std::make_move_iterator(children.rbegin()),
                        std::make_move_iterator(children.rend()));
        }
        return found;
    }

private:
    const Pickle& m_pickle;
};

/// The part of a training checkpoint that holds the weights.
PickleId weights_of(const Pickle& pickle, PickleId root)
{
    constexpr std::array<std::string_view, 10> keys{
        "state_dict", "model_state_dict", "model_state", "model",  "module", "network",
        "net",        "generator",        "params",      "weights"};
    const Walk walk(pickle);
    for (int depth = 0; depth < 8; ++depth) {
        const auto& items = pickle[root].items;
        bool has_own = false;
        if (pickle[root].kind == PickleKind::dict)
            for (std::size_t n = 0; n + 1 < items.size() && !has_own; n += 2)
                has_own = tensor_call(pickle, items[n + 1]) != no_pickle;
        if (has_own) return root;
        PickleId inner = no_pickle;
        for (const std::string_view key : keys) {
            const PickleId child = pickle.value(root, key);
            if (child == no_pickle || child == root || !is_container(pickle[child].kind)) continue;
            if (walk.holds_tensors(child)) {
                inner = child;
                break;
            }
        }
        if (inner == no_pickle) return root;
        root = inner;
    }
    return root;
}

/// Plain values as JSON; what is anything else is left out.
nlohmann::json plain_values(const Pickle& pickle, PickleId id, int depth, std::size_t& budget)
{
    if (id >= pickle.nodes.size() || budget == 0 || depth > 8) return {};
    --budget;
    const PickleNode& node = pickle[id];
    switch (node.kind) {
    case PickleKind::boolean: return node.integer != 0;
    case PickleKind::integer: return node.integer;
    case PickleKind::real: return pickle.real(id);
    case PickleKind::text: return std::string(pickle.text(id));
    case PickleKind::tuple:
    case PickleKind::list: {
        auto list = nlohmann::json::array();
        for (const PickleId item : node.items) list.push_back(plain_values(pickle, item, depth + 1, budget));
        return list;
    }
    case PickleKind::dict:
    case PickleKind::object: {
        const PickleId state = attributes(pickle, id);
        const auto& items = node.items.empty() && state != no_pickle ? pickle[state].items : node.items;
        if (items.empty()) return {};
        auto object = nlohmann::json::object();
        for (std::size_t n = 0; n + 1 < items.size(); n += 2)
            if (pickle[items[n]].kind == PickleKind::text)
                object[std::string(pickle.text(items[n]))] =
                    plain_values(pickle, items[n + 1], depth + 1, budget);
        return object;
    }
    default: return {};
    }
}

} // namespace

Result<TorchStorage> read_torch_storage(const Pickle& pickle, PickleId id, const std::string& where)
{
    const auto fault = [&](const std::string& what) {
        return Error{ErrorCode::corrupt_file, where + " " + what, "pickled tensor"};
    };
    // torch.storage.TypedStorage wraps one more level.
    if (id < pickle.nodes.size() && pickle[id].kind == PickleKind::object && !pickle.arguments(id).empty())
        id = pickle.arguments(id)[0];
    if (id >= pickle.nodes.size() || pickle[id].kind != PickleKind::persistent)
        return fault("refers to no storage");
    const auto& identity = pickle.arguments(id);
    if (identity.size() < 5 || pickle.text(identity[0]) != "storage")
        return fault("has a storage whose identity is not ('storage', type, key, device, elements)");
    TorchStorage storage;
    const std::string_view type = pickle.text(identity[1]);
    const auto dtype = type_of(type);
    if (!dtype && !is_untyped(type))
        return fault("has the storage type " + in_quotes(type.empty() ? "?" : type, 60) +
                     ", which is not known");
    storage.element_size = dtype ? dtype_size(*dtype) : 1;
    storage.key = key_text(pickle, identity[2]);
    const auto elements = pickle.integer(identity[4]);
    if (!elements || *elements < 0 ||
        !checked_multiply(static_cast<std::uint64_t>(*elements), storage.element_size))
        return fault("has a storage whose number of elements is negative or too large");
    storage.elements = static_cast<std::uint64_t>(*elements);
    if (identity.size() > 5 && pickle[identity[5]].kind == PickleKind::tuple) {
        const auto& view = pickle[identity[5]].items;
        const auto begin = view.size() == 3 ? pickle.integer(view[1]) : std::nullopt;
        const auto size = view.size() == 3 ? pickle.integer(view[2]) : std::nullopt;
        if (!begin || !size || *begin < 0 || *size < 0)
            return fault("has a storage view that is not (key, offset, size)");
        storage.view_begin = static_cast<std::uint64_t>(*begin);
        storage.elements = static_cast<std::uint64_t>(*size);
    }
    return storage;
}

Result<void> add_torch_tensors(const Pickle& pickle, const std::string& file_name,
                               const StorageFinder& find_storage, TensorFile& file)
{
    const TensorBuilder builder(pickle, file_name, find_storage);
    const PickleId weights = weights_of(pickle, pickle.root);
    std::set<std::string> names;
    for (auto& [name, call] : Walk(pickle).tensors(weights)) {
        auto info = builder.build(name, call);
        if (!info) return info.error();
        if (names.insert(name).second)
            file.tensors.push_back(*std::move(info));
        else
            file.warnings.push_back(in_quotes(file_name) + " holds the tensor " + in_quotes(name) +
                                    " twice; the first is taken");
    }
    if (file.tensors.empty())
        return Error{ErrorCode::corrupt_file,
                     in_quotes(file_name) + " is a Python pickle that holds no tensors", "pickled tensors"};
    for (const char* key : {"cfg", "args", "config", "hyper_parameters"}) {
        std::size_t budget = 20'000;
        const auto settings = plain_values(pickle, pickle.value(pickle.root, key), 0, budget);
        if (!settings.is_object()) continue;
        file.enclosed_files["training_settings.json"] =
            settings.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
        break;
    }
    return {};
}

} // namespace posiscope::core
