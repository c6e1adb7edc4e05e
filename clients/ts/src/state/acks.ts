/** What `acks` of the next datagram says: docs/WIRE.md, "Acknowledgements". */
export interface Acknowledgement {
  /** The highest packet that is acknowledged. */
  newest: number;
  /** Lengths of alternating runs from there downwards. */
  runs: readonly number[];
}
