// Decodes Shardy's attributes into the text that they have in a module, so that one reader handles both.
#include "compiler/stablehlo/bytecode/entries.h"
#include "compiler/stablehlo/operations.h"
#include "compiler/stablehlo/writer.h"

namespace capibara::stablehlo {

namespace {

constexpr std::size_t shardy_text_limit = 1 << 16;  // parts may be shared, and grow with each enclosing level

Attribute shardy_text_of(std::string_view kind, std::string text) {
  DialectAttribute attribute;
  attribute.dialect = "sdy";
  attribute.kind = kind;
  attribute.text = std::move(text);
  return Attribute::of(std::move(attribute));
}

template <class Range, class F>
std::string text_list(const Range& range, F&& text_of, const char* separator = ", ") {
  std::string out;
  bool first = true;
  for (const auto& part : range) {
    out += concat(first ? "" : separator, text_of(part));
    first = false;
  }
  return out;
}

// The factors of a rule: i, j, .. z, z_1, z_2 ..
std::string factor_name(std::int64_t factor) {
  constexpr std::int64_t letters = 'z' - 'i' + 1;
  if (factor < letters) return std::string(1, static_cast<char>('i' + factor));
  return concat("z_", factor - letters + 1);
}

std::string factor_list(std::string_view name, const std::vector<std::int64_t>& factors) {
  return factors.empty() ? "" : concat(" ", name, "={", text_list(factors, factor_name), "}");
}

std::string as_it_is(const std::string& text) { return text; }

}  // namespace

// The texts of Shardy attributes within an attribute.
std::vector<std::string> EntryReader::texts(ByteCursor& cursor) {
  std::vector<std::string> out;
  std::size_t size = 0;
  for (const Attribute& one : attributes(cursor)) {
    if (const auto* own = one.as<DialectAttribute>(); own && own->dialect == "sdy") {
      out.push_back(own->text);
    } else if (const auto* name = one.as<String>()) {
      out.push_back(quoted_text(name->value));
    } else {
      cursor.fail("expected an attribute of Shardy within another one");
    }
    size += out.back().size();
    if (size > shardy_text_limit) cursor.fail("expected a shorter attribute of Shardy");
  }
  return out;
}

Attribute EntryReader::shardy_attribute(ByteCursor& cursor) {
  const std::uint64_t code = cursor.number();
  switch (code) {
    case 0:
      return shardy_text_of("manual_axes", concat("{", text_list(texts(cursor), as_it_is), "}"));
    case 1: {
      const std::string name = quoted_text(string(cursor));
      return shardy_text_of("mesh_axis", concat(name, "=", cursor.signed_number()));
    }
    case 2: {
      std::string text = concat("[", text_list(texts(cursor), as_it_is), "]");
      const std::vector<std::int64_t> devices = signed_numbers(cursor);
      if (!devices.empty()) {
        text += concat(", device_ids=[", text_list(devices, [](std::int64_t id) { return std::to_string(id); }), "]");
      }
      return shardy_text_of("mesh", std::move(text));
    }
    case 3: {
      const std::int64_t before = cursor.signed_number();
      return shardy_text_of("sub_axis_info", concat(":(", before, ")", cursor.signed_number()));
    }
    case 4: {
      std::string text = quoted_text(string(cursor));
      const auto [part, has_part] = cursor.flagged();
      if (has_part) {
        const Attribute info = attribute(cursor, part);
        const auto* own = info.as<DialectAttribute>();
        if (!own) cursor.fail("expected a part of an axis");
        text += own->text;
      }
      return shardy_text_of("axis_ref", std::move(text));
    }
    case 5: {
      std::string text = text_list(texts(cursor), as_it_is);
      if (cursor.byte() == 0) text += text.empty() ? "?" : ", ?";
      const auto [priority, has_priority] = cursor.flagged();
      return shardy_text_of("dimension_sharding",
                            has_priority ? concat("{", text, "}p", priority) : concat("{", text, "}"));
    }
    case 6:
    case 15:
    case 17: {
      const Attribute mesh = attribute(cursor);
      const auto* name = mesh.as<SymbolReference>();
      if (!name) unsupported(cursor, "shardings that hold their own mesh");
      std::string text = concat(symbol_text(name->name), ", [", text_list(texts(cursor), as_it_is), "]");
      const std::vector<std::string> replicated = texts(cursor);
      if (!replicated.empty()) text += concat(", replicated={", text_list(replicated, as_it_is), "}");
      const std::vector<std::string> unreduced = code == 6 ? std::vector<std::string>() : texts(cursor);
      if (!unreduced.empty()) text += concat(", unreduced={", text_list(unreduced, as_it_is), "}");
      if (code == 17 && cursor.signed_number() != 0) unsupported(cursor, "reductions that are no sums");
      return shardy_text_of("sharding", std::move(text));
    }
    case 7:
    case 16: {
      const auto bracketed = [](const std::string& text) { return concat("<", text, ">"); };
      return shardy_text_of("sharding_per_value", concat("[", text_list(texts(cursor), bracketed), "]"));
    }
    case 8: {
      const std::vector<std::int64_t> factors = signed_numbers(cursor);
      for (const std::int64_t factor : factors) {
        if (factor < 0) cursor.fail("has a negative factor");
      }
      return shardy_text_of("dim_mapping", text_list(factors, factor_name, ""));
    }
    case 9:
      return shardy_text_of("tensor_mapping", concat("[", text_list(texts(cursor), as_it_is), "]"));
    case 10: {
      const std::vector<std::int64_t> sizes = signed_numbers(cursor);
      const std::string operands = text_list(texts(cursor), as_it_is), results = text_list(texts(cursor), as_it_is);
      std::string text = concat("(", operands, ")->(", results, ")");
      std::int64_t next = 0;
      if (!sizes.empty()) {
        text += concat(
            " {", text_list(sizes, [&](std::int64_t size) { return concat(factor_name(next++), "=", size); }), "}");
      }
      for (const char* list : {"reduction", "need_replication", "permutation", "blocked_propagation"}) {
        const std::vector<std::int64_t> factors = signed_numbers(cursor);
        for (const std::int64_t factor : factors) {
          if (factor < 0) cursor.fail("has a negative factor");
        }
        text += factor_list(list, factors);
      }
      if (cursor.byte() != 0) text += ", custom";
      return shardy_text_of("op_sharding_rule", std::move(text));
    }
    case 11:
      return shardy_text_of("axis_ref_list", concat("{", text_list(texts(cursor), as_it_is), "}"));
    case 12:
      return shardy_text_of("list_of_axis_ref_lists", concat("[", text_list(texts(cursor), as_it_is), "]"));
    case 13:
    case 14:
      unsupported(cursor, "parameters of Shardy's all_to_all");
    default:
      unknown(cursor, "attribute of Shardy", code);
  }
}

}  // namespace capibara::stablehlo
