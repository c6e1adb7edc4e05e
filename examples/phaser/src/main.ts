// The dots of examples/dots in Phaser: arrow keys move the own dot, the orange one, and F3 shows the
// graph of the connection.

import { connect, type Client } from "@netloop/client";
import { netGraph } from "@netloop/client/netgraph";
import Phaser from "phaser";

import { drawClass, stepWith } from "./plugin.js";
import { schema, type Dots } from "./schema.js";

const side = 100; // of the field, in units of the game
const scale = 8; // pixels of a unit
const speed = 60; // units a second
const font = { fontFamily: "system-ui, sans-serif", fontSize: 16 };
const hint = "The arrow keys move your dot. Touch the coin.";

class Field extends Phaser.Scene {
  private moved = "";

  constructor(private client: Client<Dots>) {
    super("field");
  }

  create(): void {
    const { client } = this;
    stepWith(this, client);
    this.add.grid(0, 0, side * scale, side * scale, 10 * scale, 10 * scale, 0x182338, 1, 0x24324d).setOrigin(0);
    drawClass(
      this,
      client.class("coin"),
      () => {
        const coin = this.add.circle(0, 0, 12, 0xffd166).setStrokeStyle(10, 0xffd166, 0.25);
        this.tweens.add({ targets: coin, scale: 1.25, duration: 600, ease: "Sine.inOut", yoyo: true, repeat: -1 });
        return coin;
      },
      (coin, { X, Y }) => coin.setPosition(X * scale, Y * scale),
    );
    drawClass(
      this,
      client.class("dot").interpolate(),
      (_, { owner }) => {
        const colour = owner === client.id ? 0xff9f43 : 0x6fa8dc;
        const dot = this.add.circle(0, 0, 10, colour).setStrokeStyle(8, colour, 0.25);
        const score = this.add.text(16, -24, "", { ...font, color: "#c8d4ea" });
        return this.add.container(0, 0, [dot, score]);
      },
      (shape, { X, Y, Score }) => {
        shape.setPosition(X * scale, Y * scale);
        (shape.getAt(1) as Phaser.GameObjects.Text).setText(String(Score));
      },
    );
    const keys = this.input.keyboard!.createCursorKeys();
    this.events.on(Phaser.Scenes.Events.UPDATE, () => this.steer(keys));
    const status = this.add.text(16, 14, hint, { ...font, color: "#8fa0bf" });
    client.onStatus(({ phase, text }) => status.setText(phase === "playing" ? hint : `${phase} ${text}`));
  }

  /** Sends the direction of the held keys when it changes. */
  private steer({ left, right, up, down }: Phaser.Types.Input.Keyboard.CursorKeys): void {
    const along = (plus: Phaser.Input.Keyboard.Key, minus: Phaser.Input.Keyboard.Key): number => speed * (Number(plus.isDown) - Number(minus.isDown));
    const move = { DX: along(right, left), DY: along(down, up) };
    if (this.moved === JSON.stringify(move)) return;
    this.moved = JSON.stringify(move);
    this.client.send("move", move);
  }
}

const client = await connect({ schema }).catch((error) => {
  document.body.textContent = error.message;
  throw error;
});
netGraph(client);
const game = new Phaser.Game({
  type: Phaser.AUTO,
  width: side * scale,
  height: side * scale,
  backgroundColor: "#101828",
  banner: false,
  scale: { mode: Phaser.Scale.FIT, autoCenter: Phaser.Scale.CENTER_BOTH },
  scene: new Field(client),
});
addEventListener("pagehide", () => client.close());
Object.assign(globalThis, { dots: { client, game } }); // for the browser's console, and for tests
