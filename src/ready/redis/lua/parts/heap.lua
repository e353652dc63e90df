-- Lists whose first item is the one that comes before all others.
-- After the first item has moved back.
local function siftFirst(heap, comesBefore)
  local item, size, at = heap[1], #heap, 1
  while true do
    local child = 2 * at
    if child < size and comesBefore(heap[child + 1], heap[child]) then child = child + 1 end
    if child > size or not comesBefore(heap[child], item) then break end
    heap[at] = heap[child]
    at = child
  end
  heap[at] = item
end

local function push(heap, item, comesBefore)
  local at = #heap + 1
  while at > 1 do
    local parent = math.floor(at / 2)
    if not comesBefore(item, heap[parent]) then break end
    heap[at] = heap[parent]
    at = parent
  end
  heap[at] = item
end

local function popFirst(heap, comesBefore)
  local first, last = heap[1], table.remove(heap)
  if #heap > 0 then
    heap[1] = last
    siftFirst(heap, comesBefore)
  end
  return first
end
