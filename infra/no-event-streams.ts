/** Takes the place of the SDK's event streams in bundles: no operation of the table or the queue has one, and they are 15 KB. */

export function eventStreamSerdeProvider(): never {
  throw new Error("event streams are not part of this bundle");
}

export class EventStreamSerde {
  constructor() {
    eventStreamSerdeProvider();
  }
}
