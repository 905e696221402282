-- The head of a record, which is JSON; this stands before the scripts that use it.

-- priorityOf is the priority of a job. No text in the head can look like it: quotation marks in texts are escaped.
local function priorityOf(head) return tonumber(string.match(head or '', '"priority":(%-?%d+)') or 0) end

