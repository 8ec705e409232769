"""Confluent's client, as a producer and a consumer of framed records.

    client.py produce BROKERS REGISTRY TOPIC KEY_SCHEMA VALUE_SCHEMA   one {"key": …, "value": …} a line on standard input
    client.py consume BROKERS REGISTRY TOPIC RECORDS KIND              prints one value a line, as JSON
    client.py register REGISTRY SUBJECT SCHEMA [NAME=SUBJECT …]        prints the schema's number
    client.py schema REGISTRY SUBJECT                                  prints the latest schema

A schema's format is that of its file: `.avsc`, `.proto` or `.json`. KEY_SCHEMA may be `text`: keys are then bytes as they are. Of
Protobuf the message is the last one at the top of the file; KIND is AVRO, PROTOBUF or JSON.
"""

import json
import os
import sys
import time

from confluent_kafka import Consumer, Producer
from confluent_kafka.schema_registry import Schema, SchemaReference, SchemaRegistryClient
from confluent_kafka.serialization import MessageField, SerializationContext


def kind_of(path):
    return {".avsc": "AVRO", ".proto": "PROTOBUF", ".json": "JSON"}[os.path.splitext(path)[1]]


def protobuf_class(text, beside=None):
    """The last message of a text, by Google's own compiler. What it imports is in the folder `beside`."""
    import shutil
    import tempfile

    from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
    from grpc_tools import protoc

    with tempfile.TemporaryDirectory() as folder:
        for part in os.listdir(beside) if beside else []:
            shutil.copy(os.path.join(beside, part), folder)
        name = "the-schema.proto"
        with open(os.path.join(folder, name), "w") as file:
            file.write(text)
        target = os.path.join(folder, "set")
        include = os.path.join(os.path.dirname(protoc.__file__), "_proto")
        arguments = ["protoc", f"-I{folder}", f"-I{include}", "--include_imports", f"--descriptor_set_out={target}", name]
        assert protoc.main(arguments) == 0
        files = descriptor_pb2.FileDescriptorSet.FromString(open(target, "rb").read())
    pool = descriptor_pool.DescriptorPool()
    for file in files.file:
        pool.Add(file)
    last = files.file[-1]
    full = ".".join(part for part in (last.package, last.message_type[-1].name) if part)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName(full))


def serializer(client, path):
    text = open(path).read()
    kind = kind_of(path)
    if kind == "AVRO":
        from confluent_kafka.schema_registry.avro import AvroSerializer

        return AvroSerializer(client, text)
    if kind == "JSON":
        from confluent_kafka.schema_registry.json_schema import JSONSerializer

        return JSONSerializer(text, client)
    from confluent_kafka.schema_registry.protobuf import ProtobufSerializer
    from google.protobuf import json_format

    message = protobuf_class(text, os.path.dirname(path))
    write = ProtobufSerializer(message, client, {"use.deprecated.format": False})
    return lambda value, context: write(json_format.ParseDict(value, message()), context)


def deserializer(client, topic, kind):
    if kind == "AVRO":
        from confluent_kafka.schema_registry.avro import AvroDeserializer

        return AvroDeserializer(client)
    text = client.get_latest_version(f"{topic}-value").schema.schema_str
    if kind == "JSON":
        from confluent_kafka.schema_registry.json_schema import JSONDeserializer

        return JSONDeserializer(text, schema_registry_client=client)
    from confluent_kafka.schema_registry.protobuf import ProtobufDeserializer
    from google.protobuf import json_format

    read = ProtobufDeserializer(protobuf_class(text), {"use.deprecated.format": False})
    return lambda raw, context: json_format.MessageToDict(read(raw, context), preserving_proto_field_name=True)


def produce(brokers, registry, topic, key_schema, value_schema):
    client = SchemaRegistryClient({"url": registry})
    key = None if key_schema == "text" else serializer(client, key_schema)
    value = serializer(client, value_schema)
    producer = Producer({"bootstrap.servers": brokers})
    for line in sys.stdin:
        record = json.loads(line)
        raw = record["key"]
        if key is not None:
            raw = key(raw, SerializationContext(topic, MessageField.KEY))
        producer.produce(
            topic,
            key=raw,
            value=value(record["value"], SerializationContext(topic, MessageField.VALUE)),
            partition=0,
        )
        producer.poll(0)
    assert producer.flush(30) == 0


def consume(brokers, registry, topic, records, kind):
    client = SchemaRegistryClient({"url": registry})
    value = deserializer(client, topic, kind)
    consumer = Consumer(
        {
            "bootstrap.servers": brokers,
            "group.id": f"reader-{time.time_ns()}",
            "auto.offset.reset": "earliest",
            "isolation.level": "read_committed",
        }
    )
    consumer.subscribe([topic])
    read, deadline = 0, time.time() + 60
    while read < records and time.time() < deadline:
        message = consumer.poll(1)
        if message is None:
            continue
        assert message.error() is None, message.error()
        assert message.key() is None and message.headers() is None
        print(json.dumps(value(message.value(), SerializationContext(topic, MessageField.VALUE))))
        read += 1
    consumer.close()


def register(registry, subject, schema, *references):
    client = SchemaRegistryClient({"url": registry})
    named = [reference.split("=") for reference in references]
    parts = [SchemaReference(name, of, client.get_latest_version(of).version) for name, of in named]
    print(client.register_schema(subject, Schema(open(schema).read(), kind_of(schema), parts)))


def schema(registry, subject):
    print(SchemaRegistryClient({"url": registry}).get_latest_version(subject).schema.schema_str)


command, arguments = sys.argv[1], sys.argv[2:]
if command == "produce":
    produce(*arguments)
elif command == "consume":
    consume(*arguments[:3], int(arguments[3]), arguments[4])
elif command == "register":
    register(*arguments)
else:
    schema(*arguments)
