"""Reserved column names. A user's column must not start with the prefix, and no reserved one is ever published."""

from __future__ import annotations

PREFIX = "_anon_"

LINK = "_link"                    # private row key or slot, staged only where truthfulness needs it
ORDER = PREFIX + "order"          # keyed value by which a release is shuffled
KEY = PREFIX + "key"              # the run key, as a one-row frame that is joined in

SHOWN_LOW, SHOWN_HIGH = PREFIX + "shown_low_", PREFIX + "shown_high_"  # + position: bounds that replace a label
ROWS = PREFIX + "rows"            # how many rows a tuple or class has
PERSONS = PREFIX + "persons"      # how many persons with just this one tuple
POPULATION = PREFIX + "population"  # how many rows of a population a tuple or class has
CLASS = PREFIX + "class"          # code of the class column (CM)
NODE = PREFIX + "node"            # index of a lattice node
TUPLES = PREFIX + "tuples"        # the distinct tuples of one person
MULTIPLICITY = PREFIX + "times"   # how many persons share such a set of tuples
SET = PREFIX + "set"              # identity of such a set

LEAF = PREFIX + "leaf_"           # + position: leaf code of a tuple, in the map of a local recoding
LEVEL = PREFIX + "level_"         # + position: the level to which that tuple's value is generalized

CLUSTER = PREFIX + "cluster"      # cluster of records that are recoded together: their smallest LINK
BLOCK = PREFIX + "block"          # number of a block of records that are recoded together
SLOT = PREFIX + "slot"            # number of a published row inside its block; in a ring, its rank
PART = PREFIX + "part"            # number of a ring or group inside its block
ROUND = PREFIX + "round"          # which of the disjoint assignments of its part an edge belongs to
CHOSEN = PREFIX + "chosen"        # whether that assignment is the published one
SLOTS = PREFIX + "slots"          # the slots a record may be published as, by round
TAKEN = PREFIX + "taken"          # the round that is published
DRAW = PREFIX + "draw"            # number of a fresh assignment, drawn for a simulated attack only

# columns that set_valued publishes; these names are not reserved
BASE = "base"                     # items that more than half of the records behind the row have
UNCERTAIN = "uncertain"           # items on which these records differ
MAX_ERRORS = "max_errors"         # the most items in which one of these records differs from the base

UNFIT = " ,;{}()\n\t="  # what Delta refuses in a name

PRIVATE = (LINK, ORDER, KEY, BLOCK, SLOT, CLUSTER)


def is_reserved(name: str) -> bool:
    """Whether a user's column name collides with ours."""
    return name == LINK or name.startswith(PREFIX)


def is_publishable(name: str) -> bool:
    """Whether a Delta table can have a column, or a field inside one, of this name."""
    return not any(character in UNFIT for character in name)


def quoted(name: str) -> str:
    """A column name as Spark's parser takes it: dots and backticks in it are part of the name."""
    return "`" + name.replace("`", "``") + "`"
