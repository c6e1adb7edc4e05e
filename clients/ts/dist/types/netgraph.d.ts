import type { Client } from "./api.js";
/** The options of netGraph. */
export interface NetGraphOptions {
    /** The element that gets the canvas; by default the page's body. */
    parent?: HTMLElement;
    /** The key that shows and hides the graph, a KeyboardEvent.code; "" for none. By default F3. */
    key?: string;
    /** The place in the window, as inset of CSS; by default the lower left corner. */
    inset?: string;
}
/** A graph of one client. */
export interface NetGraph {
    readonly canvas: HTMLCanvasElement;
    /** Shows or hides the graph: without shown the other way round. */
    toggle(shown?: boolean): void;
    /** Removes the canvas, and the graph from the client and the keyboard. */
    remove(): void;
}
/** Makes the graph of a client, hidden at first. */
export declare function netGraph(client: Client<any>, options?: NetGraphOptions): NetGraph;
