"""The types of the library's parameters and results, for make_stubs.py.

A row of the table states a type if its parameter means something else than in other functions ("k: int = 0"). Everywhere else the
parameter's name determines the kind, as in NumPy and jax: BY_NAME maps names to kinds, KINDS maps kinds to types. A name in neither
is an error of the script: it gets its kind here, or its type in the row.
"""

KINDS = {
    "array": "ArrayLike",
    "arrays": "ArrayLike | Sequence[ArrayLike]",  # several, or one array whose rows are taken
    "axis": "int",
    "axes": "Sequence[int]",
    "any axes": "int | Sequence[int]",
    "axis name": "AxisName",
    "shape": "Shape",
    "shape or size": "int | Shape | np.ndarray[Any, Any]",
    "dtype": "DTypeLike",
    "flag": "bool",
    "integer": "int",
    "real": "float",
    "text": "str",
    "function": "Callable[..., Any]",
    "any": "Any",
    "pytree": "PyTree",
    "nothing": "None",  # arguments of NumPy that jax accepts but rejects unless None
    "device": "Device | Sharding",
    "sharding": "Sharding | PartitionSpec",
    "precision": "PrecisionLike",
    "accuracy": "Tolerance | AccuracyMode",
    "mode": "str | GatherScatterMode",
    "padding": "str | Sequence[tuple[int, int]]",
    "generator": "str | np.dtype[Any]",
    "groups": "Sequence[Sequence[int]]",
    "pairs": "Sequence[tuple[int, int]]",
}

_NAMES = {
    "array": """
        A B C E N T Z Zxx a a1 a2 a_matrix alpha append ar ar1 ar2 args arr array arrs ary arys atol attention_mask aweights b base beta
        bias bins c c_matrix cases codebook codes concentration condition context correction cov cval d data ddof default df dfden dfnum
        discont dl down dropout_key du dx e element epsilon f fill_value filt fp fs fweights gate gate_weights group_offset group_sizes
        h image in1 in2 ind index indices initial input inputs kappa key key_bits_array key_segment_ids key_value_seq_lengths keys
        labels input_offsets lam lhs like_arr lmbda loc logits m mask max maxval mean min minval mu nan negative_slope neginf on_false
        on_true operand output_offsets p padding_value period phi pivots posinf pred prepend q query query_seq_lengths r r_matrix
        recv_sizes repeats rhs rtol sample scale scatter_indices seed segment_ids send_sizes seq_of_zeros sigma sorter start start_index
        stddev step stop taus test_elements theta to_begin to_end tokens u up update updates v val vals value values varargs variance w
        w_vector weights where which x x1 x2 xi xp y z
    """,
    "arrays": "arrays bounds choices condlist choicelist coordinates idxs multi_index operands start_indices tup",
    "axis": "axis axis1 axis2 axisa axisb axisc column_axis concat_axis dimension freq_axis reduction_dimension scatter_dimension "
            "split_axis start_dimension stop_dimension time_axis",
    "axes": "axes broadcast_dimensions dimensions dims fft_lengths filter_shape lhs_dilation limit_indices padding_config permutation "
            "reps rhs_dilation sizes slice_sizes spatial_dims strides window_dilation base_dilation window_strides",
    "any axes": "batch_axis bp destination in_axis indices_or_sections out_axis source",
    "axis name": "axis_name",
    "shape": "shape new_shape new_sizes in_shape lhs_shape operand_shape rhs_shape s update_shape window_dimensions window_shape",
    "dtype": "dtype index_dtype new_dtype out_dtype preferred_element_type",
    "flag": "check_finite copy density keepdims use_magma wrap_negative_indices",
    "integer": "M batch_group_count bucket_size count decimals diff_n edge_order exponent_bits feature_group_count k kth length "
               "limit_index mantissa_bits max_iterations max_squarings minlength n n_iter n_max ndim ndmin nfft noverlap nperseg num "
               "num_classes num_keys num_segments offset permutation_size rank reduction_input_size_override series_order size slice_size "
               "stride total_repeat_length unroll order blocksize trans type deg",
    "real": "eps fillvalue rcond recall_target tol",
    "text": "UPLO assume_a average bitorder boundary detrend distribution indexing kind lapack_driver method mode nan_policy norm order "
            "output scaling select sep side string to trim window",
    "function": "_dot_general computation func func1d function mask_func select_callable",
    "any": "debug kw kwargs lwork",
    "pytree": "init_value init_values",
    "nothing": "out overwrite_data allow_singular eigvals dynamic_shape",
    "device": "device",
    "sharding": "out_sharding sharding",
    "precision": "precision",
    "accuracy": "accuracy",
    "padding": "padding",
    "generator": "impl impl_spec",
    "groups": "axis_index_groups",
    "pairs": "pads perm",
}
BY_NAME = {name: KINDS[kind] for kind, names in _NAMES.items() for name in names.split()}

# Names that a whole module uses for something else, and types used by a single name.
BY_NAME |= {
    "numpy.shape": KINDS["shape or size"],
    "numpy.new_shape": KINDS["shape or size"],
    "numpy.order": "str",
    "numpy.choicelist": "Sequence[ArrayLike]",
    "numpy.range": "Sequence[ArrayLike | Sequence[ArrayLike] | None]",
    "numpy.linalg.ord": "float | str",
    "numpy.linalg.subset_by_index": "tuple[int, int]",
    "lax.dimension_numbers": "ConvGeneralDilatedDimensionNumbers | ScatterDimensionNumbers",
    "lax.rounding_method": "RoundingMethod | str",
    "lax.fft_type": "FftType | str",
    "lax.padding_config": "Sequence[tuple[int, int, int]]",
    "lax.ragged_dot_dimension_numbers": "RaggedDotDimensionNumbers",
    "lax.linalg.subset_by_index": "tuple[int, int]",
    "image.method": "str | ResizeMethod",
    "image.scale": "ArrayLike",
    "image.translation": "ArrayLike",
    "random.mode": "str",
    "scipy.linalg.c_and_lower": "tuple[ArrayLike, bool]",
    "scipy.linalg.lu_and_piv": "tuple[ArrayLike, ArrayLike]",
    "scipy.linalg.select_range": "tuple[float, float]",
    "scipy.special.k": KINDS["array"],
    "scipy.special.n": KINDS["array"],
    "scipy.stats.k": KINDS["array"],
    "scipy.stats.n": KINDS["array"],
    "numpy.N": "int",
    "numpy.reps": KINDS["any axes"],
    "numpy.shift": "ArrayLike | Sequence[int]",
    "numpy.obj": "ArrayLike | slice | Sequence[int]",
    "numpy.pad_width": "int | ArrayLike | Sequence[Any] | dict[int, Any]",
    "numpy.funclist": "Sequence[ArrayLike | Callable[..., Any]]",
    "numpy.subscripts": "str | ArrayLike",
    "numpy.operands": "ArrayLike | Sequence[Any]",
    "numpy.optimize": "str | bool | Sequence[Any]",
    "nn.local_window_size": "int | tuple[int, int]",
    "lax.src": KINDS["array"],
    "lax.shapes": KINDS["axes"],
    "numpy.shapes": KINDS["any axes"],
}

# Where the default is more specific than the name: functions over several axes have None, those along one axis a number; modes of
# gathers and scatters have None, those of convolutions a string.
BY_DEFAULT = {("axis", None): KINDS["any axes"], ("mode", None): KINDS["mode"]}

# What the functions of a module return if the row does not say; by default an Array.
RESULTS = {"nn.initializers": "Initializer"}

# The modules that define type names.
IMPORTS = {
    "typing": ["Any", "Literal", "NamedTuple", "TypeVar", "overload"],
    "collections.abc": ["Callable", "Sequence"],
    "capibara._core": ["Array", "CatalogPrimitive"],
    "capibara._stub_types": ["AxisName", "Prototype", "PyTree", "Shape"],
    "capibara._types": ["AccuracyMode", "ConvDimensionNumbers", "EigImplementation", "EighImplementation", "FftType",
                        "GatherDimensionNumbers", "GatherScatterMode", "RaggedDotDimensionNumbers", "RandomAlgorithm", "ResizeMethod",
                        "RoundingMethod", "ScatterDimensionNumbers", "SvdAlgorithm", "Tolerance"],
    "capibara.jax._devices": ["Device"],
    "capibara.jax._mesh": ["PartitionSpec"],
    "capibara.jax._sharding": ["Sharding"],
    "capibara.jax.lax": ["ConvGeneralDilatedDimensionNumbers", "DotDimensionNumbers", "PrecisionLike"],
    "capibara.jax.typing": ["ArrayLike", "DTypeLike"],
}
