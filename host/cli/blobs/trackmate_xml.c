/* SPDX-License-Identifier: Apache-2.0 */
/* Writes TrackMate's XML: the model (spots, and tracks as edges between spots) and settings that describe the image.
 *
 * It follows what TrackMate 7 reads (TmXmlReader) and writes, and contains every element that TrackMate requires.
 * Detector and tracker are "manual", because the spots come from outside TrackMate. */
#include "host/cli/blobs/blobs.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/file.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct feature {
    const char *key, *name, *brief, *dimension;
    bool whole;
} feature;

static const feature spot_features[] = {
    { "QUALITY", "Quality", "Quality", "QUALITY", false },
    { "POSITION_X", "X", "X", "POSITION", false },
    { "POSITION_Y", "Y", "Y", "POSITION", false },
    { "POSITION_Z", "Z", "Z", "POSITION", false },
    { "POSITION_T", "T", "T", "TIME", false },
    { "FRAME", "Frame", "Frame", "NONE", true },
    { "RADIUS", "Radius", "R", "LENGTH", false },
    { "VISIBILITY", "Visibility", "Visibility", "NONE", true },
};
static const feature edge_features[] = {
    { "SPOT_SOURCE_ID", "Source spot ID", "Source ID", "NONE", true },
    { "SPOT_TARGET_ID", "Target spot ID", "Target ID", "NONE", true },
    { "LINK_COST", "Edge cost", "Cost", "COST", false },
    { "DISPLACEMENT", "Displacement", "Disp.", "LENGTH", false },
    { "EDGE_TIME", "Edge time", "Edge T", "TIME", false },
};
static const feature track_features[] = {
    { "TRACK_INDEX", "Track index", "Index", "NONE", true },
    { "TRACK_ID", "Track ID", "ID", "NONE", true },
    { "NUMBER_SPOTS", "Number of spots in track", "N spots", "NONE", true },
    { "NUMBER_GAPS", "Number of gaps", "N gaps", "NONE", true },
    { "TRACK_DURATION", "Track duration", "Duration", "TIME", false },
    { "TRACK_START", "Track start", "Track start", "TIME", false },
    { "TRACK_STOP", "Track stop", "Track stop", "TIME", false },
    { "TRACK_DISPLACEMENT", "Track displacement", "Track disp.", "LENGTH", false },
};
/* TrackMate's default display settings. */
static const char display[] = "{\n"
                              "  \"name\": \"CurrentDisplaySettings\",\n"
                              "  \"spotUniformColor\": \"204, 51, 204, 255\",\n"
                              "  \"spotColorByType\": \"DEFAULT\",\n"
                              "  \"spotColorByFeature\": \"UNIFORM_COLOR\",\n"
                              "  \"spotDisplayRadius\": 1.0,\n"
                              "  \"spotDisplayedAsRoi\": true,\n"
                              "  \"spotMin\": 0.0,\n"
                              "  \"spotMax\": 10.0,\n"
                              "  \"spotShowName\": false,\n"
                              "  \"trackMin\": 0.0,\n"
                              "  \"trackMax\": 10.0,\n"
                              "  \"trackColorByType\": \"TRACKS\",\n"
                              "  \"trackColorByFeature\": \"TRACK_INDEX\",\n"
                              "  \"trackUniformColor\": \"204, 204, 51, 255\",\n"
                              "  \"undefinedValueColor\": \"0, 0, 0, 255\",\n"
                              "  \"missingValueColor\": \"89, 89, 89, 255\",\n"
                              "  \"highlightColor\": \"51, 230, 51, 255\",\n"
                              "  \"trackDisplayMode\": \"FULL\",\n"
                              "  \"colormap\": \"Jet\",\n"
                              "  \"limitZDrawingDepth\": false,\n"
                              "  \"drawingZDepth\": 10.0,\n"
                              "  \"fadeTracks\": true,\n"
                              "  \"fadeTrackRange\": 30,\n"
                              "  \"useAntialiasing\": true,\n"
                              "  \"spotVisible\": true,\n"
                              "  \"trackVisible\": true,\n"
                              "  \"font\": {\n"
                              "    \"name\": \"Arial\",\n"
                              "    \"style\": 1,\n"
                              "    \"size\": 12,\n"
                              "    \"pointSize\": 12.0,\n"
                              "    \"fontSerializedDataVersion\": 1\n"
                              "  },\n"
                              "  \"lineThickness\": 1.0,\n"
                              "  \"selectionLineThickness\": 4.0,\n"
                              "  \"trackschemeBackgroundColor1\": \"128, 128, 128, 255\",\n"
                              "  \"trackschemeBackgroundColor2\": \"192, 192, 192, 255\",\n"
                              "  \"trackschemeForegroundColor\": \"0, 0, 0, 255\",\n"
                              "  \"trackschemeDecorationColor\": \"0, 0, 0, 255\",\n"
                              "  \"trackschemeFillBox\": false,\n"
                              "  \"spotFilled\": false,\n"
                              "  \"spotTransparencyAlpha\": 1.0\n"
                              "}";

static void add_escaped(clv_text *text, const char *value)
{
    for (const unsigned char *c = (const unsigned char *)value; *c; ++c) {
        const char *entity = *c == '&'   ? "&amp;"
                             : *c == '<' ? "&lt;"
                             : *c == '>' ? "&gt;"
                             : *c == '"' ? "&quot;"
                             : *c < 0x20 ? "?" /* most of them are not allowed in XML */
                                         : NULL;
        if (entity)
            clv_text_bytes(text, entity, strlen(entity));
        else
            clv_text_bytes(text, c, 1);
    }
}

static void add_features(clv_text *t, const char *element, const feature *f, size_t count)
{
    clv_text_add(t, "      <%s>\n", element);
    for (size_t i = 0; i < count; ++i)
        clv_text_add(t,
                     "        <Feature feature=\"%s\" name=\"%s\" shortname=\"%s\" "
                     "dimension=\"%s\" isint=\"%s\" />\n",
                     f[i].key, f[i].name, f[i].brief, f[i].dimension,
                     f[i].whole ? "true" : "false");
    clv_text_add(t, "      </%s>\n", element);
}

static double time_of(const blobs_units *units, uint32_t frame)
{
    return frame * (units->interval > 0 ? units->interval : 1);
}

static void add_spots(clv_text *t, const blobs_units *units, const blobs_trackmate_row *rows,
                      size_t count)
{
    clv_text_add(t, "    <AllSpots nspots=\"%zu\">\n", count);
    for (size_t i = 0; i < count; ++i) {
        const blobs_trackmate_row *r = &rows[i];
        if (!i || r->frame != rows[i - 1].frame)
            clv_text_add(t, "      <SpotsInFrame frame=\"%u\">\n", r->frame);
        clv_text_add(t,
                     "        <Spot ID=\"%zu\" name=\"ID%zu\" QUALITY=\"%.9g\" POSITION_T=\"%.9g\" "
                     "POSITION_X=\"%.9g\" POSITION_Y=\"%.9g\" POSITION_Z=\"%.9g\" FRAME=\"%u\" "
                     "RADIUS=\"%.9g\" "
                     "VISIBILITY=\"1\" />\n",
                     r->number, r->number, (double)r->quality, time_of(units, r->frame), r->x, r->y,
                     r->z, r->frame, r->radius);
        if (i + 1 == count || rows[i + 1].frame != r->frame)
            clv_text_add(t, "      </SpotsInFrame>\n");
    }
    clv_text_add(t, "    </AllSpots>\n");
}

static int by_track(const void *left, const void *right)
{
    const blobs_trackmate_row *a = *(const blobs_trackmate_row *const *)left,
                              *b = *(const blobs_trackmate_row *const *)right;
    if (a->track != b->track) return a->track < b->track ? -1 : 1;
    if (a->segment != b->segment) return a->segment < b->segment ? -1 : 1;
    return (a->frame > b->frame) - (a->frame < b->frame);
}

static double distance(const blobs_trackmate_row *a, const blobs_trackmate_row *b)
{
    return sqrt((a->x - b->x) * (a->x - b->x) + (a->y - b->y) * (a->y - b->y) +
                (a->z - b->z) * (a->z - b->z));
}

static void add_edge(clv_text *t, const blobs_units *units, const blobs_trackmate_row *from,
                     const blobs_trackmate_row *to)
{
    const double far = distance(from, to);
    clv_text_add(t,
                 "        <Edge SPOT_SOURCE_ID=\"%zu\" SPOT_TARGET_ID=\"%zu\" LINK_COST=\"%.9g\" "
                 "DISPLACEMENT=\"%.9g\" EDGE_TIME=\"%.9g\" />\n",
                 from->number, to->number, far * far, far,
                 (time_of(units, from->frame) + time_of(units, to->frame)) / 2);
}

/* Adds the members [first, end), at least two, as one track; they are sorted by segment and frame. */
static void add_track(clv_text *t, const blobs_units *units, const blobs_trackmate_row *rows,
                      const blobs_trackmate_row *const *of, size_t first, size_t end, size_t index)
{
    size_t gaps = 0;
    const blobs_trackmate_row *a = of[first], *z = of[first];
    for (size_t i = first + 1; i < end; ++i) {
        gaps += of[i]->segment == of[i - 1]->segment && of[i]->frame - of[i - 1]->frame > 1;
        if (of[i]->frame < a->frame) a = of[i];
        if (of[i]->frame > z->frame) z = of[i];
    }
    const double start = time_of(units, a->frame), stop = time_of(units, z->frame);
    clv_text_add(
        t,
        "      <Track name=\"Track_%lld\" TRACK_ID=\"%lld\" TRACK_INDEX=\"%zu\" "
        "NUMBER_SPOTS=\"%zu\" "
        "NUMBER_GAPS=\"%zu\" TRACK_DURATION=\"%.9g\" TRACK_START=\"%.9g\" TRACK_STOP=\"%.9g\" "
        "TRACK_DISPLACEMENT=\"%.9g\">\n",
        (long long)a->track, (long long)a->track, index, end - first, gaps, stop - start, start,
        stop, distance(a, z));
    for (size_t i = first; i < end; ++i) {
        if (i > first && of[i]->segment == of[i - 1]->segment) add_edge(t, units, of[i - 1], of[i]);
        if (of[i]->split_from) add_edge(t, units, &rows[of[i]->split_from - 1], of[i]);
        if (of[i]->merges_into) add_edge(t, units, of[i], &rows[of[i]->merges_into - 1]);
    }
    clv_text_add(t, "      </Track>\n");
}

static clv_status add_tracks(clv_text *t, const blobs_units *units, const blobs_trackmate_row *rows,
                             size_t count)
{
    const blobs_trackmate_row **of = clv_alloc(CLV_MAX(count, (size_t)1), sizeof *of);
    if (!of) return clv_fail(CLV_E_MEMORY, "not enough memory for tracks");
    size_t members = 0, index = 0;
    clv_text shown = { 0 };
    for (size_t i = 0; i < count; ++i)
        if (rows[i].track >= 0) of[members++] = &rows[i];
    if (members) qsort(of, members, sizeof *of, by_track);
    clv_text_add(t, "    <AllTracks>\n");
    for (size_t first = 0, end; first < members; first = end) {
        for (end = first + 1; end < members && of[end]->track == of[first]->track;)
            ++end;
        if (end - first < 2) continue; /* for TrackMate a single spot is not a track */
        add_track(t, units, rows, of, first, end, index++);
        clv_text_add(&shown, "      <TrackID TRACK_ID=\"%lld\" />\n", (long long)of[first]->track);
    }
    clv_text_add(t, "    </AllTracks>\n    <FilteredTracks>\n%s    </FilteredTracks>\n",
                 clv_text_get(&shown));
    t->failed |= shown.failed;
    clv_text_clear(&shown);
    clv_free(of);
    return CLV_OK;
}

static void add_settings(clv_text *t, const blobs_units *u, double radius, uint32_t last)
{
    const char *slash = u->movie ? strrchr(u->movie, '/') : NULL;
    const double side = u->pixel_size > 0 ? u->pixel_size : 1;
    const size_t frames = CLV_MAX(u->frames, (size_t)last + 1);
    clv_text_add(t, "  <Settings>\n    <ImageData filename=\"");
    add_escaped(t, slash ? slash + 1 : u->movie ? u->movie : "");
    clv_text_add(t, "\" folder=\"");
    for (const char *c = u->movie; slash && c <= slash; ++c)
        add_escaped(t, (char[2]){ *c, '\0' });
    clv_text_add(
        t,
        "\" width=\"%zu\" height=\"%zu\" nslices=\"%zu\" nframes=\"%zu\" pixelwidth=\"%.9g\" "
        "pixelheight=\"%.9g\" voxeldepth=\"%.9g\" timeinterval=\"%.9g\" />\n",
        u->width, u->height, CLV_MAX(u->depth, (size_t)1), frames, side, u->row > 0 ? u->row : side,
        u->plane > 0 ? u->plane : 1, u->interval > 0 ? u->interval : 1);
    clv_text_add(t,
                 "    <BasicSettings xstart=\"0\" xend=\"%zu\" ystart=\"0\" yend=\"%zu\" "
                 "zstart=\"0\" zend=\"%zu\" "
                 "tstart=\"0\" tend=\"%zu\" />\n",
                 u->width ? u->width - 1 : 0, u->height ? u->height - 1 : 0,
                 u->depth ? u->depth - 1 : 0, frames - 1);
    clv_text_add(t,
                 "    <DetectorSettings DETECTOR_NAME=\"MANUAL_DETECTOR\" RADIUS=\"%.9g\" />\n"
                 "    <InitialSpotFilter feature=\"QUALITY\" value=\"0.0\" isabove=\"true\" />\n"
                 "    <SpotFilterCollection />\n"
                 "    <TrackerSettings TRACKER_NAME=\"MANUAL_TRACKER\" />\n"
                 "    <TrackFilterCollection />\n"
                 "    <AnalyzerCollection>\n      <SpotAnalyzers />\n      <EdgeAnalyzers />\n     "
                 " <TrackAnalyzers />\n"
                 "    </AnalyzerCollection>\n  </Settings>\n",
                 radius);
}

clv_status blobs_xml_write(const char *path, const blobs_units *units,
                           const blobs_trackmate_row *rows, size_t count)
{
    clv_text t = { 0 };
    double radius = 0;
    clv_text_add(&t, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<TrackMate version=\"7.11.1\">\n"
                     "  <Log>Spots and tracks of Cleave</Log>\n  <Model spatialunits=\"");
    add_escaped(&t, units->pixel_size > 0 ? units->space : "pixel");
    clv_text_add(&t, "\" timeunits=\"");
    add_escaped(&t, units->interval > 0 ? units->time : "frame");
    clv_text_add(&t, "\">\n    <FeatureDeclarations>\n");
    add_features(&t, "SpotFeatures", spot_features, CLV_LEN(spot_features));
    add_features(&t, "EdgeFeatures", edge_features, CLV_LEN(edge_features));
    add_features(&t, "TrackFeatures", track_features, CLV_LEN(track_features));
    clv_text_add(&t, "    </FeatureDeclarations>\n");
    for (size_t i = 0; i < count; ++i)
        radius += rows[i].radius / (double)count;
    add_spots(&t, units, rows, count);
    clv_status status = add_tracks(&t, units, rows, count);
    clv_text_add(&t, "  </Model>\n");
    add_settings(&t, units, count ? radius : 1, count ? rows[count - 1].frame : 0);
    clv_text_add(&t,
                 "  <GUIState state=\"ConfigureViews\" />\n  "
                 "<DisplaySettings>%s</DisplaySettings>\n</TrackMate>\n",
                 display);
    const clv_part part = { t.data, t.length };
    if (!status && t.failed) status = clv_fail(CLV_E_MEMORY, "%s: out of memory", path);
    if (!status) status = clv_parts_write(path, &part, 1);
    clv_text_clear(&t);
    return status;
}
