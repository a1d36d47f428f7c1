/* SPDX-License-Identifier: Apache-2.0 */
/* Prepares XML for readers that look for single elements and attributes: TrackMate's spots, OME's descriptions. */
#ifndef CLEAVE_HOST_IO_XML_H
#define CLEAVE_HOST_IO_XML_H

#include "base/text.h"

/* Overwrites comments and CDATA sections with blanks, and keeps their line ends. One without an end reaches to the end
 * of the text. */
void clv_xml_blank(char *text, size_t length);
/* Appends the value of an attribute, with XML's five entities and references to characters (&#181; &#xB5;) decoded.
 * Other entities stay as they are. */
void clv_xml_decode(const char *value, size_t length, clv_text *out);

#endif
