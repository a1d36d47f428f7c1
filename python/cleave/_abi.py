# SPDX-License-Identifier: Apache-2.0
"""Declares the structures of include/cleave for ctypes; _functions.py declares the functions. tests/python/test_abi.py
compares every size and offset with the values that a C compiler takes from the headers."""
from __future__ import annotations

import ctypes as c
from typing import Any

size_t, void_p, char_p, double, f32 = c.c_size_t, c.c_void_p, c.c_char_p, c.c_double, c.c_float
u32, i32, u64, i64, uint, boolean = (c.c_uint32, c.c_int32, c.c_uint64, c.c_int64, c.c_uint,
                                     c.c_bool)
enum = c.c_int
status = c.c_int

Progress = c.CFUNCTYPE(c.c_int, char_p, size_t, size_t, void_p)  # job, done, total, user
ProbeProgress = c.CFUNCTYPE(c.c_int, char_p, void_p)  # doing, user
LogSink = c.CFUNCTYPE(None, enum, char_p, void_p)


def _struct(name: str, fields: list[tuple[str, Any]], header: str) -> Any:
    """Returns a structure named as in C; `header` is the file in include/cleave that defines it, for test_abi.py."""
    return type(name, (c.Structure,), {"_fields_": fields, "header": header, "__slots__": ()})


# ---- probe.h, runtime.h

ProbeOptions = _struct("clv_probe_options", [
    ("size", size_t), ("mode", enum), ("devices", char_p), ("mode_given", boolean),
    ("devices_given", boolean), ("mode_by", char_p),
    ("devices_by", char_p), ("isolate", boolean), ("timeout_s", double), ("check", boolean),
    ("bench", enum), ("measure_free", boolean), ("reproducible", boolean), ("forget", boolean),
    ("simulate", char_p), ("scenario", char_p), ("helper", char_p), ("progress", ProbeProgress),
    ("progress_user", void_p)], "probe.h")
ContextOptions = _struct("clv_context_options", [
    ("size", size_t), ("mode", enum), ("devices", char_p), ("memory_bytes", u64),
    ("memory_fraction", double), ("schedule", enum), ("sub_devices", uint), ("batch", size_t),
    ("cache_dir", char_p), ("no_tuning", boolean), ("trace", boolean),
    ("no_qualification", boolean), ("tensor_bytes", u64), ("bind_threads", boolean),
    ("mode_given", boolean), ("devices_given", boolean), ("memory_given", boolean),
    ("schedule_given", boolean), ("compilers", uint), ("helper", char_p),
    ("event_times", boolean)], "runtime.h")
MemoryStats = _struct("clv_memory_stats", [
    ("budget_bytes", u64), ("used_bytes", u64), ("cached_bytes", u64), ("peak_bytes", u64),
    ("raw_allocations", u64), ("pool_hits", u64), ("failures", u64),
    ("tensor_bytes", u64), ("tensor_hits", u64), ("tensor_fills", u64),
    ("tensor_evictions", u64)], "runtime.h")
MemoryRoom = _struct("clv_memory_room", [
    ("total_bytes", u64), ("limit_bytes", u64), ("free_bytes", u64), ("largest_bytes", u64)],
    "runtime.h")
Source = _struct("clv_cl_source", [("name", char_p), ("text", char_p), ("length", size_t)],
                 "runtime.h")
Define = _struct("clv_define", [("name", char_p), ("value", c.c_long)], "runtime.h")
MAX_DEFINES = 16


class ProbeDeviceHead(c.Structure):
    """The first members of clv_probe_device, which are enough to find a device in the JSON report."""
    _fields_ = [("platform", size_t), ("ordinal", uint), ("id", char_p), ("name", char_p)]
    header, head_of = "probe.h", "clv_probe_device"


# ---- job.h, items.h

Share = _struct("clv_share", [
    ("device", char_p), ("units", size_t), ("chunks", size_t), ("busy_s", double),
    ("kernel_s", double), ("bytes_to_device", u64), ("bytes_from_device", u64),
    ("memory_peak_bytes", u64), ("dropped", size_t), ("failed", size_t), ("left_out", char_p)],
    "job.h")
INPUT, SHARED, OUTPUT, VALUE, LOCAL, FIRST, COUNT = range(7)  # clv_item_kind
ITEMS_ARGUMENTS = 64
ItemArg = _struct("clv_item_arg", [("kind", enum), ("bytes", size_t), ("data", void_p),
                                   ("result", void_p)], "items.h")
ItemsReference = c.CFUNCTYPE(status, c.POINTER(void_p), size_t, size_t, void_p)  # args, first,
Items = _struct("clv_items", [                                                  # count, user
    ("size", size_t), ("source", c.POINTER(Source)), ("kernel", char_p),
    ("defines", Define * MAX_DEFINES), ("items", size_t), ("grid", size_t * 2),
    ("local", size_t * 3), ("flops", double), ("signature", char_p),
    ("reference", ItemsReference), ("progress", Progress), ("progress_user", void_p)], "items.h")

# ---- patch.h

PacoInput = _struct("clv_paco_input", [
    ("size", size_t), ("cube", void_p), ("frames", size_t), ("height", size_t), ("width", size_t),
    ("frame_stride", size_t), ("row_stride", size_t), ("angles", void_p), ("psf", void_p),
    ("psf_size", size_t), ("weights", void_p)], "patch.h")
PacoOptions = _struct("clv_paco_options", [
    ("size", size_t), ("radius", uint), ("psf_mode", enum), ("convention", enum),
    ("rounding", enum), ("reverse_angles", boolean), ("centre_given", boolean),
    ("centre_x", double), ("centre_y", double), ("psf_vectors", uint), ("progress", Progress),
    ("progress_user", void_p), ("measure_radius", uint)], "patch.h")
PacoCounts = _struct("clv_paco_counts", [
    ("valid", size_t), ("outside", size_t), ("not_finite", size_t), ("constant", size_t),
    ("degenerate", size_t)], "patch.h")
Detection = _struct("clv_detection", [
    ("x", size_t), ("y", size_t), ("separation_px", double), ("position_angle", double),
    ("snr", double), ("flux", double), ("sigma", double)], "patch.h")
Companion = _struct("clv_companion", [
    ("x", double), ("y", double), ("x_err", double), ("y_err", double), ("separation_px", double),
    ("position_angle", double), ("flux", double), ("flux_err", double), ("snr", double),
    ("false_alarm", double), ("recovery", double),
    ("ring", size_t)], "patch.h")
Star = _struct("clv_star", [
    ("x", double), ("y", double), ("asymmetry", double), ("found", boolean)], "patch.h")
PacoFrame = _struct("clv_paco_frame", [
    ("scale", double), ("missing", double), ("rejected", boolean)], "patch.h")
AsdiOptions = _struct("clv_asdi_options", [
    ("size", size_t), ("fwhm_px", double), ("threshold", double), ("spectra", void_p),
    ("spectrum_count", size_t)], "patch.h")
AsdiCompanions = _struct("clv_asdi_companions", [
    ("count", size_t), ("channels", size_t), ("companions", void_p), ("spectrum", void_p),
    ("fluxes", void_p)], "patch.h")
ContrastOptions = _struct("clv_contrast_options", [
    ("size", size_t), ("snr", double), ("injections", size_t), ("raw", boolean), ("known_xy", void_p),
    ("known_count", size_t)], "patch.h")
ContrastPoint = _struct("clv_contrast_point", [
    ("separation_px", double), ("flux", double), ("flux_low", double), ("flux_high", double),
    ("flux_normal", double), ("throughput", double), ("noise", double), ("threshold", double),
    ("injections", size_t)], "patch.h")

# ---- blob.h, track.h

BlobOptions = _struct("clv_blob_options", [
    ("size", size_t), ("min_sigma_px", double), ("max_sigma_px", double), ("num_sigma", uint),
    ("log_scale", boolean), ("dog", boolean), ("sigma_ratio", double),
    ("threshold_given", boolean), ("threshold_rel_given", boolean),
    ("threshold_sigma_given", boolean), ("threshold", double), ("threshold_rel", double),
    ("threshold_sigma", double), ("movie_scope", boolean), ("taps", enum), ("normalize", boolean),
    ("invert", boolean), ("subpixel", enum), ("keep_overlapping", boolean),
    ("overlap_given", boolean), ("overlap", double),
    ("exclude_border", size_t), ("progress", Progress), ("progress_user", void_p),
    ("keep_hot_pixels", boolean), ("voxel_size", double * 3)], "blob.h")
Spot = _struct("clv_spot", [
    ("frame", u32), ("flags", u32), ("y", f32), ("x", f32), ("sigma", f32), ("response", f32),
    ("mass", f32), ("background", f32), ("snr", f32)], "blob.h")
BlobFrames = _struct("clv_blob_frames", [
    ("size", size_t), ("type", enum), ("frames", size_t), ("height", size_t), ("width", size_t),
    ("frame_stride", size_t), ("row_stride", size_t)], "blob.h")
BlobSummary = _struct("clv_blob_summary", [
    ("frames", size_t), ("spots", size_t), ("empty_frames", size_t), ("bad_pixels", size_t),
    ("dropped_bad", size_t), ("max_response", double), ("reruns", size_t), ("job_s", double),
    ("finish_s", double), ("hot_pixels", size_t)], "blob.h")
VolumeStacks = _struct("clv_volume_stacks", [
    ("size", size_t), ("type", enum), ("stacks", size_t), ("depth", size_t), ("height", size_t),
    ("width", size_t), ("stack_stride", size_t), ("plane_stride", size_t), ("row_stride", size_t)],
    "volume.h")
SpotError = _struct("clv_spot_error", [("y", f32), ("x", f32)], "blob.h")
VolumeSpot = _struct("clv_volume_spot", [
    ("frame", u32), ("flags", u32), ("z", f32), ("y", f32), ("x", f32), ("sigma", f32),
    ("sigma_z", f32), ("response", f32), ("mass", f32), ("background", f32), ("snr", f32),
    ("z_err", f32), ("y_err", f32), ("x_err", f32)], "volume.h")
Point = _struct("clv_point", [("frame", i64), ("y", double), ("x", double)], "track.h")
LinkOptions = _struct("clv_link_options", [
    ("size", size_t), ("search_range", double), ("memory", size_t), ("min_length", size_t),
    ("progress", Progress), ("progress_user", void_p), ("z", void_p), ("predict", enum),
    ("guess_velocity", double * 3), ("adaptive_stop", double), ("adaptive_step", double),
    ("adaptive_group", size_t), ("channel_bin", double), ("channel_least", size_t), ("channel_axis", enum),
    ("guess_places", void_p), ("guess_velocities", void_p), ("guesses", size_t)], "track.h")
Branch = _struct("clv_branch", [("kind", enum), ("from", size_t), ("to", size_t)], "track.h")

# ---- stage.h
StageOptions = _struct("clv_stage_options", [("size", size_t), ("memory", size_t)], "stage.h")
StageShift = _struct("clv_stage_shift", [
    ("y", double), ("x", double), ("y_err", double), ("x_err", double), ("found", boolean)], "stage.h")

# ---- search.h

SearchOptions = _struct("clv_search_options", [
    ("size", size_t), ("top", size_t), ("similarity", enum), ("progress", Progress),
    ("progress_user", void_p), ("first_pass", enum), ("rescore", size_t)], "search.h")

# ---- motion.h

Track = _struct("clv_track", [
    ("particle", i64), ("first", i64), ("last", i64), ("spots", size_t), ("extent", double),
    ("displacement", double)], "motion.h")
TrackFilter = _struct("clv_track_filter", [
    ("size", size_t), ("min_spots", size_t), ("max_spots", size_t), ("min_extent", double),
    ("max_extent", double), ("min_displacement", double), ("max_displacement", double)], "motion.h")
Msd = _struct("clv_msd", [
    ("lag", i64), ("pairs", size_t), ("tracks", size_t), ("msd", double), ("error", double),
    ("independent", double), ("mean", double * 3), ("square", double * 3)], "motion.h")
DiffusionOptions = _struct("clv_diffusion_options", [
    ("size", size_t), ("position_error_given", boolean), ("position_error", double),
    ("exposure", double), ("drift_share", double)], "motion.h")
Diffusion = _struct("clv_diffusion", [
    ("d", double), ("d_error", double), ("lateral", double), ("axial", double),
    ("position_variance", double), ("position_variance_z", double), ("offset", double),
    ("displacements", size_t), ("tracks", size_t)], "motion.h")

# ---- spectra.h

MAX_LAYERS, MAX_SPECTRA = 8, 36
SpectraArm = _struct("clv_spectra_arm", [
    ("name", char_p), ("points", size_t), ("first", double), ("last", double),
    ("layers", size_t), ("width", size_t * (MAX_LAYERS + 1)), ("weight", void_p * MAX_LAYERS),
    ("bias", void_p * MAX_LAYERS), ("mean", double * 4), ("std", double * 4),
    ("hull_count", size_t), ("hull", void_p), ("ccf", void_p), ("ccf_points", size_t),
    ("ccf_log0", double), ("ccf_log1", double), ("ccf_spline_kms", double),
    ("sigma", double), ("nodes", size_t * 4), ("axis", void_p * 4), ("grid", void_p),
    ("grid_spectra", size_t), ("grid_log_flux", void_p)], "spectra.h")
SpectraLibrary = _struct("clv_spectra_library", [
    ("size", size_t), ("arm_count", size_t), ("arms", c.POINTER(SpectraArm)), ("ccf_count", size_t),
    ("ccf_parameters", void_p)], "spectra.h")
Spectrum = _struct("clv_spectrum", [
    ("arm", size_t), ("pixels", size_t), ("wavelength", void_p), ("flux", void_p),
    ("ivar", void_p), ("mask", void_p), ("resolution", void_p), ("diagonals", size_t),
    ("unit", double), ("resolution_is_final", boolean)], "spectra.h")
StarPrior = _struct("clv_star_prior", [
    ("value", double * 6), ("sigma", double * 6), ("fixed", boolean * 6)], "spectra.h")
SpectraStars = _struct("clv_spectra_stars", [
    ("size", size_t), ("count", size_t), ("spectra", size_t), ("items", c.POINTER(Spectrum)),
    ("priors", c.POINTER(StarPrior))], "spectra.h")
SpecfitOptions = _struct("clv_specfit_options", [
    ("size", size_t), ("terms", uint), ("starts", uint), ("max_velocity_kms", double),
    ("velocity_step_kms", double), ("max_vsini_kms", double), ("library_sigma", double),
    ("models", boolean), ("progress", Progress), ("progress_user", void_p),
    ("min_velocity_given", boolean), ("min_velocity_kms", double), ("ignored", void_p),
    ("ignored_count", size_t), ("reject_sigma", double)], "spectra.h")
SpecfitResult = _struct("clv_specfit_result", [
    *((name, double) for name in (
        "velocity", "vsini", "teff", "logg", "feh", "alpha", "velocity_error", "skewness",
        "kurtosis", "teff_error", "logg_error", "feh_error", "alpha_error")),
    ("covariance", double * 21), ("start_velocity", double), ("neg2logl", double),
    ("chisq", double * MAX_SPECTRA), ("chisq_continuum", double * MAX_SPECTRA),
    ("pixels", size_t * MAX_SPECTRA), ("rejected", size_t * MAX_SPECTRA), ("signal_to_noise", double * MAX_SPECTRA),
    ("model", void_p * MAX_SPECTRA), ("starts_agreed", uint), ("rounds", uint),
    ("warnings", uint)], "spectra.h")

# ---- templates.h

TemplateSource = _struct("clv_template_source", [
    ("size", size_t), ("points", size_t), ("wavelength", void_p), ("resolving_power", double)], "templates.h")
TemplateArm = _struct("clv_template_arm", [
    ("size", size_t), ("first", double), ("last", double), ("step", double), ("sigma", double),
    ("resolving_power", double), ("margin_kms", double), ("keep_slope", boolean)], "templates.h")
TemplateGrid = _struct("clv_template_grid", [
    ("points", size_t), ("first", double), ("last", double), ("sigma", double), ("ccf_points", size_t),
    ("ccf_log0", double), ("ccf_log1", double), ("ccf_spline_kms", double)], "templates.h")

# ---- blas.h

MatmulOptions = _struct("clv_matmul_options", [
    ("size", size_t), ("a_row", size_t), ("a_col", size_t), ("b_row", size_t), ("b_col", size_t),
    ("c_row", size_t), ("c_col", size_t), ("batch", size_t), ("a_batch", size_t),
    ("b_batch", size_t), ("c_batch", size_t), ("scale_given", boolean), ("alpha", f32),
    ("beta", f32), ("progress", Progress), ("progress_user", void_p)], "blas.h")

# ---- array.h

MonteCarloOptions = _struct("clv_monte_carlo_options", [
    ("size", size_t), ("key", u32 * 2), ("progress", Progress), ("progress_user", void_p)],
    "array.h")
ConvolveOptions = _struct("clv_convolve_options", [
    ("size", size_t), ("edge", enum), ("constant", f32), ("input_stride", size_t),
    ("output_stride", size_t), ("progress", Progress), ("progress_user", void_p)], "array.h")
EigenOptions = _struct("clv_eigen_options", [
    ("size", size_t), ("progress", Progress), ("progress_user", void_p)], "array.h")

# ---- offload.h, array_data.h, array_math.h

Offload = _struct("clv_offload", [
    ("side", enum), ("forced", boolean), ("measured", boolean), ("flops", double),
    ("bytes", double), ("transfer_bytes", double), ("resident_bytes", double),
    ("host_s", double), ("device_s", double), ("launch_s", double), ("host_rate", double),
    ("kernel_rate", double), ("transfer_rate", double), ("first_s", double),
    ("operation", c.c_char * 32), ("device", c.c_char * 96), ("reason", c.c_char * 200)],
                  "offload.h")
ArrayStats = _struct("clv_array_stats", [
    ("calls_host", u64), ("calls_device", u64), ("fallbacks", u64), ("uploads", u64),
    ("downloads", u64), ("bytes_to_device", u64), ("bytes_from_device", u64)], "array_data.h")
MapInput = _struct("clv_map_input", [("name", char_p), ("array", void_p), ("value", f32)],
                   "array_math.h")
Operand = _struct("clv_operand", [("array", void_p), ("type", enum), ("whole", c.c_int64), ("real", c.c_double),
                                  ("imaginary", c.c_double)], "array_typed.h")
FuseName = _struct("clv_fuse_name", [("name", char_p), ("role", enum), ("type", enum)], "array_fuse.h")
ProductOptions = _struct("clv_product_options", [
    ("size", size_t), ("a_transposed", boolean), ("b_transposed", boolean)], "array_math.h")

FourierOptions = _struct("clv_fourier_options", [
    ("size", size_t), ("run", void_p), ("plan", void_p * 2), ("form", enum), ("from", enum), ("to", enum),
    ("rank", size_t), ("shape", size_t * 8), ("result_rank", size_t), ("result_shape", size_t * 8),
    ("length", size_t * 2), ("inverse", boolean), ("scale", double), ("block", size_t),
    ("run_second", void_p), ("order", void_p), ("factors", void_p)], "array_fourier.h")

# ---- tokenizer.h, transformer.h, train.h

ModelConfig = _struct("clv_model_config", [
    ("size", size_t), ("width", size_t), ("heads", size_t), ("layers", size_t), ("ffn", size_t),
    ("vocabulary", size_t), ("positions", size_t), ("types", size_t), ("eps", f32), ("act", enum),
    ("pooling", enum), ("normalize", boolean), ("max_length", size_t), ("skips_prompt", boolean),
    ("family", enum), ("embedding", size_t), ("first_position", size_t), ("groups", size_t), ("buckets", size_t),
    ("joined", enum * 4), ("joined_count", size_t), ("output", size_t), ("steps", void_p), ("step_count", size_t)],
    "model.h")
TokenizerOptions = _struct("clv_tokenizer_options", [
    ("size", size_t), ("max_length", size_t), ("unlimited", boolean),
    ("replace_invalid", boolean), ("drop_invalid", boolean)], "tokenizer.h")
TokenizerInfo = _struct("clv_tokenizer_info", [
    ("size", size_t), ("vocabulary", size_t), ("max_length", size_t), ("unk", i32), ("cls", i32), ("sep", i32),
    ("pad", i32), ("mask", i32), ("lower_case", boolean), ("kind", enum), ("bos", i32), ("eos", i32),
    ("adds_bos", boolean), ("keeps_end", boolean), ("pairs", boolean), ("pair_types", boolean),
    ("double_pairs", boolean)], "tokenizer.h")
TokenizeOptions = _struct("clv_tokenize_options", [
    ("size", size_t), ("threads", size_t), ("first", size_t), ("what", char_p), ("bare", boolean),
    ("literal", boolean)], "tokenizer.h")
TokenRows = _struct("clv_token_rows", [
    ("ids", c.POINTER(i32)), ("offsets", c.POINTER(size_t)), ("rows", size_t), ("tokens", size_t),
    ("truncated", size_t), ("unknown", size_t), ("replaced", size_t), ("id_room", size_t),
    ("row_room", size_t)], "tokenizer.h")
ChatMessage = _struct("clv_chat_message", [("role", char_p), ("content", char_p)], "chat.h")
LanguageOptions = _struct("clv_language_options", [
    ("size", size_t), ("context", size_t), ("cache", enum), ("chunk", size_t),
    ("split", c.POINTER(size_t)), ("split_count", size_t), ("activations", enum)], "generate.h")
LanguageInfo = _struct("clv_language_info", [
    ("size", size_t), ("architecture", char_p), ("name", char_p), ("template_", char_p),
    ("layers", size_t), ("width", size_t), ("heads", size_t), ("kv_heads", size_t),
    ("head_width", size_t), ("ffn", size_t), ("vocabulary", size_t), ("context", size_t),
    ("room", size_t), ("parameters", u64), ("bytes", u64), ("ends", c.POINTER(i32)),
    ("end_count", size_t), ("device_count", size_t), ("tied", boolean), ("types", char_p)],
    "generate.h")
Sampling = _struct("clv_sampling", [
    ("size", size_t), ("penalty", double), ("penalty_last", size_t), ("top_k", size_t),
    ("top_p", double), ("min_p", double), ("temperature", double), ("seed", u64)], "generate.h")
Piece = c.CFUNCTYPE(c.c_int, void_p, size_t, i32, void_p)  # text, length, id, user
Writing = _struct("clv_writing", [
    ("size", size_t), ("tokens", size_t), ("sampling", c.POINTER(Sampling)),
    ("stops", c.POINTER(char_p)), ("ignore_end", boolean), ("piece", Piece), ("user", void_p),
    ("lookup", size_t)], "generate.h")
Written = _struct("clv_written", [
    ("size", size_t), ("tokens", void_p), ("count", size_t), ("text", void_p), ("length", size_t),
    ("stop", enum), ("first_s", double), ("rest_s", double), ("guessed", size_t),
    ("hits", size_t)], "generate.h")
EncoderOptions = _struct("clv_encoder_options", [
    ("size", size_t), ("batch_tokens", size_t), ("hidden", boolean), ("half", boolean),
    ("half_products", boolean)], "transformer.h")
RankerOptions = _struct("clv_ranker_options", [
    ("size", size_t), ("max_length", size_t), ("batch_tokens", size_t), ("threads", size_t),
    ("activation", enum), ("half", boolean), ("replace_invalid", boolean),
    ("drop_invalid", boolean), ("half_products", boolean)], "rank.h")
TrainerOptions = _struct("clv_trainer_options", [
    ("size", size_t), ("task", enum), ("classes", size_t), ("optimizer", enum), ("beta1", double),
    ("beta2", double), ("eps", double), ("momentum", double), ("decay", double),
    ("decay_all", boolean), ("clip", double), ("scale", double), ("frozen_layers", size_t),
    ("frozen_embedding", boolean), ("seed", u64), ("check_every", u64),
    ("check_every_given", boolean), ("head", enum), ("block_tokens", size_t)], "train.h")
TrainResult = _struct("clv_train_result", [
    ("loss", double), ("gradient_length", double), ("counted", size_t), ("right", size_t)],
    "train.h")


def structures() -> list[type[c.Structure]]:
    """Returns every structure of this module, for checks of their layouts."""
    return [thing for thing in globals().values()
            if isinstance(thing, type) and issubclass(thing, c.Structure)]
