"""Texts of exported programs: names in the signature of the main function, custom calls that may change, texts for several platforms."""
import re

from capibara.jax import default_backend
from capibara.jax._platforms import depends_on_platform, traced_for

INDEX = "_platform_index"


def with_names(text, arguments, results, kept):
    """The text with the names of arguments and results in the signature of its main function, as jax writes them."""
    found = re.search(r"func\.func public @main\((.*)\) -> (.*) \{\n", text)
    if found is None:
        return text
    inputs = re.split(r", (?=%arg\d+: )", found[1])
    outputs = re.split(r", (?=tensor<)", found[2].removeprefix("(").removesuffix(")") if found[2].startswith("(") else found[2])
    first = len(inputs) - len(kept)
    if first < 0 or len(outputs) != len(results) or " loc(" in found[1] or "jax.result_info" in found[2]:
        return text

    def quoted(name):
        return '"' + name.replace("\\", "\\\\").replace('"', '\\"') + '"'
    inputs[first:] = [f"{one} loc({quoted(arguments[place])})" for one, place in zip(inputs[first:], kept)]
    outputs = [re.sub(r"^(tensor<[^ ]*)(?: \{(.*)\})?$",
                      lambda match, name=name: f"{match[1]} {{jax.result_info = {quoted(name)}{', ' + match[2] if match[2] else ''}}}", one)
               for one, name in zip(outputs, results)]
    return f"{text[:found.start(1)]}{', '.join(inputs)}) -> ({', '.join(outputs)}) {{\n{text[found.end():]}"


def with_index(text, count):
    """The text of a program that was read, with the attribute of the argument that is the platform's index."""
    found = re.search(r"func\.func public @main\((%arg0: tensor<i\d+>)(.*)\) -> ", text)
    if found is None or found[2].count("%arg") != count or "jax.global_constant" in found[0]:
        return text
    index = f'{text[:found.end(1)]} {{jax.global_constant = "{INDEX}"}}{text[found.end(1):]}'
    return _flagged(index)


def _flagged(text):
    """The text of a program that takes a platform's index or symbolic sizes, which its module says."""
    flag, (head, rest) = "jax.uses_shape_polymorphism = true", text.split("\n", 1)
    if " attributes {" in head:
        return f"{head.replace('attributes {', f'attributes {{{flag}, ', 1)}\n{rest}"
    return f"{head.removesuffix('{')}attributes {{{flag}}} {{\n{rest}"


# Targets of custom calls that jax guarantees to keep; {} stands for the letters of the four LAPACK types.
_STABLE = {"Sharding", "SPMDFullToShardShape", "SPMDShardToFullShape", "annotate_device_placement", "cu_threefry2x32_ffi",
           "hip_threefry2x32_ffi", "Eigh", "Qr", "ProductOfElementaryHouseholderReflectors", "LuDecomposition", "ApproxTopK",
           "stablehlo.dynamic_approx_top_k", "tf.call_tf_function", "tpu_custom_call", "AllocateBuffer", "mosaic_gpu_v2",
           "stablehlo.dynamic_reduce_window", "stablehlo.dynamic_rng_bit_generator", "stablehlo.dynamic_top_k", "shape_assertion",
           "cusparse_gtsv2_ffi", "cu_lu_pivots_to_permutation", "hip_lu_pivots_to_permutation", "hipsolver_gesdd_ffi",
           *(f"{solver}solver_{name}_ffi" for solver in ("cu", "hip")
             for name in ("getrf", "geqrf", "orgqr", "potrf", "syevd", "gesvd", "gesvdj", "sytrd")),
           *(f"lapack_{letter}{name}_ffi" for letter in "sdcz"
             for name in ("potrf", "geqrf", "geev", "gesdd", "getrf", "sytrd" if letter in "sd" else "hetrd", "gehrd", "gees", "trsm",
                          "gtsv", "orgqr" if letter in "sd" else "ungqr", "syevd" if letter in "sd" else "heevd"))}


def check_custom_calls(text, disabled):
    """Raises if the text calls targets that are neither stable nor permitted by a disabled check."""
    permitted = {check.is_custom_call() for check in disabled}
    if "ALL" in permitted:
        return
    found = [line.strip() for line in text.split("\n")
             if (call := re.search(r'custom_call"?(?:\s+@|\(.*call_target_name = )("(?:[^"\\]|\\.)*"|[\w.$]+)', line))
             and call[1].strip('"') not in _STABLE | permitted]
    if found:
        shown = "\n".join(line if len(line) <= 400 else line[:400] + "..." for line in found)
        raise ValueError("Cannot serialize code with custom calls whose targets have no compatibility guarantees. See "
                         "https://docs.jax.dev/en/latest/export/export.html#compatibility-guarantees-for-custom-calls. Examples are:\n"
                         f"{shown}.\nHint: pass disabled_checks=[DisabledSafetyCheck.custom_call(target)] to export.")


def for_platforms(lower, platforms):
    """The text and the arguments read of a function that may depend on the platform: one text if all are equal, otherwise a main function
    that takes the index of its platform."""
    if platforms == (default_backend(),) or not depends_on_platform(lower):
        return lower()
    texts = []
    for platform in platforms:
        with traced_for(platform):
            texts.append(lower())
    if all(text == texts[0] for text in texts):
        return texts[0]
    if any(kept != texts[0][1] for _, kept in texts):
        raise NotImplementedError(f"export: the function reads other arguments on some of the platforms {', '.join(platforms)}; use all of "
                                  "its arguments on each, or export it for one platform")
    header = re.search(r"  func\.func public @main\((.*)\) -> (.*) \{\n", texts[0][0])
    inputs = re.findall(r"(%arg\d+): (tensor<[^<>]*>)", header[1])
    outputs = re.findall(r"tensor<[^<>]*>", header[2])
    if len(inputs) != header[1].count("%arg"):
        raise NotImplementedError("export: only arrays are taken by functions that depend on the platform")
    branches, functions = [], []
    for number, (text, _) in enumerate(texts):
        body = text[text.index("  func.func"):text.rstrip().rindex("}")]
        names = set(re.findall(r'func\.func \w+ @("(?:[^"\\]|\\.)*"|[\w.$]+)\(', body))

        def renamed(match, names=names, number=number):
            name = match[1]
            return match[0] if name not in names else f'@{name[:-1]}_{number}"' if name.endswith('"') else f"@{name}_{number}"
        body = re.sub(r'@("(?:[^"\\]|\\.)*"|[\w.$]+)', renamed, body)
        functions.append(re.sub(r" \{(?:tf|jax|mhlo)\.[^{}]*\}", "", body.replace("func.func public", "func.func private", 1)))
        kinds = ", ".join(outputs)
        values = ", ".join(_shifted(name) for name, _ in inputs)
        branches.append(f"      %{number + 1}:{len(outputs)} = func.call @main_{number}({values}) : "
                        f"({', '.join(kind for _, kind in inputs)}) -> ({kinds})\n      stablehlo.return "
                        f"{', '.join(f'%{number + 1}#{i}' for i in range(len(outputs)))} : {kinds}\n")
    takes = ", ".join([f'%arg0: tensor<i32> {{jax.global_constant = "{INDEX}"}}', *([_shifted(header[1])] if header[1] else [])])
    main = (f"  func.func public @main({takes}) -> {header[2]} {{\n    %0:{len(outputs)} = \"stablehlo.case\"(%arg0) ({{\n"
            + "    }, {\n".join(branches) + f"    }}) : (tensor<i32>) -> ({kinds})\n    return "
            f"{', '.join(f'%0#{i}' for i in range(len(outputs)))} : {kinds}\n  }}\n")
    return _flagged(texts[0][0][:texts[0][0].index("  func.func")]) + main + "".join(functions) + "}\n", texts[0][1]


def devices_of(text):
    """The number of devices that a text is for."""
    partitions = re.search(r"mhlo\.num_partitions = (\d+)", text[:10000])
    return int(partitions[1]) if partitions else 1


def _shifted(arguments):
    """A list of arguments after one more."""
    return re.sub(r"%arg(\d+)", lambda match: f"%arg{int(match[1]) + 1}", arguments)
