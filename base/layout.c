/* SPDX-License-Identifier: Apache-2.0 */
/* Lists the sizes of the public structures, by name. */
#include <cleave/array.h>
#include <cleave/array_fourier.h>
#include <cleave/array_fuse.h>
#include <cleave/array_math.h>
#include <cleave/array_typed.h>
#include <cleave/blas.h>
#include <cleave/blob.h>
#include <cleave/generate.h>
#include <cleave/items.h>
#include <cleave/job.h>
#include <cleave/layout.h>
#include <cleave/motion.h>
#include <cleave/patch.h>
#include <cleave/rank.h>
#include <cleave/search.h>
#include <cleave/spectra.h>
#include <cleave/stage.h>
#include <cleave/templates.h>
#include <cleave/tokenizer.h>
#include <cleave/track.h>
#include <cleave/train.h>
#include <cleave/volume.h>

#include <string.h>

#define SIZE_OF(structure) .name = #structure, .bytes = sizeof(structure)

static const struct {
    const char *name;
    size_t bytes;
} sizes[] = {
    { SIZE_OF(clv_arg) },
    { SIZE_OF(clv_array_stats) },
    { SIZE_OF(clv_asdi_companions) },
    { SIZE_OF(clv_asdi_options) },
    { SIZE_OF(clv_blob_frames) },
    { SIZE_OF(clv_blob_options) },
    { SIZE_OF(clv_blob_summary) },
    { SIZE_OF(clv_box) },
    { SIZE_OF(clv_branch) },
    { SIZE_OF(clv_chat_message) },
    { SIZE_OF(clv_cl_source) },
    { SIZE_OF(clv_context_options) },
    { SIZE_OF(clv_convolve_options) },
    { SIZE_OF(clv_cost) },
    { SIZE_OF(clv_define) },
    { SIZE_OF(clv_detection) },
    { SIZE_OF(clv_diffusion) },
    { SIZE_OF(clv_diffusion_options) },
    { SIZE_OF(clv_eigen_options) },
    { SIZE_OF(clv_encoder_options) },
    { SIZE_OF(clv_fourier_options) },
    { SIZE_OF(clv_fuse_name) },
    { SIZE_OF(clv_item_arg) },
    { SIZE_OF(clv_items) },
    { SIZE_OF(clv_job) },
    { SIZE_OF(clv_language_info) },
    { SIZE_OF(clv_language_options) },
    { SIZE_OF(clv_launch) },
    { SIZE_OF(clv_link_options) },
    { SIZE_OF(clv_map_input) },
    { SIZE_OF(clv_operand) },
    { SIZE_OF(clv_matmul_options) },
    { SIZE_OF(clv_memory_room) },
    { SIZE_OF(clv_memory_stats) },
    { SIZE_OF(clv_monte_carlo_options) },
    { SIZE_OF(clv_msd) },
    { SIZE_OF(clv_offload) },
    { SIZE_OF(clv_paco_counts) },
    { SIZE_OF(clv_companion) },
    { SIZE_OF(clv_spot_error) },
    { SIZE_OF(clv_star) },
    { SIZE_OF(clv_paco_frame) },
    { SIZE_OF(clv_contrast_options) },
    { SIZE_OF(clv_contrast_point) },
    { SIZE_OF(clv_paco_input) },
    { SIZE_OF(clv_paco_options) },
    { SIZE_OF(clv_place) },
    { SIZE_OF(clv_point) },
    { SIZE_OF(clv_probe_device) },
    { SIZE_OF(clv_probe_options) },
    { SIZE_OF(clv_product_options) },
    { SIZE_OF(clv_ranker_options) },
    { SIZE_OF(clv_sampling) },
    { SIZE_OF(clv_search_options) },
    { SIZE_OF(clv_share) },
    { SIZE_OF(clv_specfit_options) },
    { SIZE_OF(clv_specfit_result) },
    { SIZE_OF(clv_spectra_arm) },
    { SIZE_OF(clv_spectra_library) },
    { SIZE_OF(clv_spectra_stars) },
    { SIZE_OF(clv_spectrum) },
    { SIZE_OF(clv_spot) },
    { SIZE_OF(clv_stage_options) },
    { SIZE_OF(clv_stage_shift) },
    { SIZE_OF(clv_star_prior) },
    { SIZE_OF(clv_template_arm) },
    { SIZE_OF(clv_template_grid) },
    { SIZE_OF(clv_template_source) },
    { SIZE_OF(clv_token_rows) },
    { SIZE_OF(clv_tokenize_options) },
    { SIZE_OF(clv_tokenizer_options) },
    { SIZE_OF(clv_tokenizer_info) },
    { SIZE_OF(clv_model_config) },
    { SIZE_OF(clv_train_result) },
    { SIZE_OF(clv_track) },
    { SIZE_OF(clv_track_filter) },
    { SIZE_OF(clv_trainer_options) },
    { SIZE_OF(clv_volume_spot) },
    { SIZE_OF(clv_volume_stacks) },
    { SIZE_OF(clv_writing) },
    { SIZE_OF(clv_written) },
};

size_t clv_size_of(const char *structure)
{
    for (size_t i = 0; structure && i < sizeof sizes / sizeof *sizes; ++i)
        if (strcmp(sizes[i].name, structure) == 0) return sizes[i].bytes;
    return 0;
}
