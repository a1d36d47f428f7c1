# RoBERTa's tokens are no markup.
s|<\(/*s\)>|\&lt;\1\&gt;|g
# In a comment, #include is no link.
/^ *\(\*\|\/\*\)/s|#include|\\#include|g
# Breathe knows one parameter for each description: "@param a, b  text" becomes "@param a and b: text".
s|\(@param\(\[[a-z]*\]\)\{0,1\} *[a-z_]*\), \([a-z_, ]*[a-z_]\)   *|\1 and \3: |
# Words of code; Doxygen's own Markdown takes more for markup than it should.
/^ *\(\*\|\/\*\)\|\/\*\*</s|`\([^`]*\)`|<tt>\1</tt>|g
# A paragraph for each of these.
s|^ \* \(Accuracy\|Threads\|Source\|Errors\): *| *\n * \1: |
