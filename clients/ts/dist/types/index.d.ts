/**
 * The netloop client for browsers and Node.
 *
 *     import { connect } from "./netloop.js";
 *     import { schema } from "./arena.js"; // written by: server schema --ts
 *
 *     const client = await connect({ schema });
 *     const ships = client.class("ship").interpolate();
 *     client.handle("said", (said) => chat(said.name, said.text));
 *     const frame = (now: number) => {
 *       client.step(now);
 *       ships.views((ship) => draw(ship.X, ship.Y, ship.Heading));
 *       requestAnimationFrame(frame);
 *     };
 *     requestAnimationFrame(frame);
 *
 * The client calls the page's callbacks only inside step. It replaces a broken connection by
 * itself: see Client.status.
 */
export * from "./api.js";
export * from "./schema.js";
export { connect } from "./connect.js";
