"""Data as users have them: in chunks, and in tables with one row per item."""

from .chunks import Chunk, ChunkedData
from .item_transformer import ItemTransformer
from .items import StackedItems, stack_items

__all__ = ["Chunk", "ChunkedData", "ItemTransformer", "StackedItems", "stack_items"]
