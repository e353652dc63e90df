export interface PageRequest {
  readonly limit?: number;
  readonly cursor?: string;
}

/** May hold fewer than asked for while `nextCursor` is set: what one call reads is bounded. */
export interface Page<Item> {
  readonly items: readonly Item[];
  readonly nextCursor: string | null;
}
