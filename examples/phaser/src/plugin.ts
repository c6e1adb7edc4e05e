// netloop in a Phaser scene: the client steps with the scene, and each replicated object has a game
// object.

import type { ObjectClass, ReplicatedObject } from "@netloop/client";
import Phaser from "phaser";

/** Steps the client before each update of the scene, until the scene ends. */
export function stepWith(scene: Phaser.Scene, client: { step(now: number): void }): void {
  const step = (time: number): void => client.step(time);
  scene.events.on(Phaser.Scenes.Events.PRE_UPDATE, step);
  scene.events.once(Phaser.Scenes.Events.SHUTDOWN, () => scene.events.off(Phaser.Scenes.Events.PRE_UPDATE, step));
}

/**
 * Keeps a game object for each drawn object of a class: make makes it, draw gets the state of each
 * frame, between two snapshots if the class is interpolated.
 */
export function drawClass<S, T extends Phaser.GameObjects.GameObject>(
  scene: Phaser.Scene,
  objects: ObjectClass<S, unknown>,
  make: (state: S, object: ReplicatedObject<S>) => T,
  draw: (shape: T, state: S) => void,
): void {
  const shapes = new Map<ReplicatedObject<S>, T>();
  const drawn = new Set<ReplicatedObject<S>>();
  const update = (): void => {
    drawn.clear();
    objects.views((state, object) => {
      drawn.add(object);
      let shape = shapes.get(object);
      if (!shape) shapes.set(object, (shape = make(state, object)));
      draw(shape, state);
    });
    for (const [object, shape] of shapes) {
      if (drawn.has(object)) continue;
      shape.destroy();
      shapes.delete(object);
    }
  };
  scene.events.on(Phaser.Scenes.Events.UPDATE, update);
  scene.events.once(Phaser.Scenes.Events.SHUTDOWN, () => scene.events.off(Phaser.Scenes.Events.UPDATE, update));
}
